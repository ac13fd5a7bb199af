"""Scores are those of the sacrebleu command, and mean what their names say."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest

from transduce.errors import ConfigError, InputError
from transduce.evaluation import evaluate, exact_match, quick_bleu, quick_chrf

Spoil = Callable[[float, int], list[str]]
ALL = ["-m", "bleu", "chrf", "ter"]
TWO = ["A cat.", "A dog sees it."]


def test_scores_intervals_and_signatures_are_those_of_the_sacrebleu_command(
    references: list[str], spoil: Spoil, sacrebleu: Callable[..., str]
) -> None:
    hypotheses = spoil(0.2, 2)
    printed = json.loads(sacrebleu(references, hypotheses, options=[*ALL, "--confidence", "--confidence-n", "50"]))
    scores = evaluate(hypotheses, references, samples=50).scores
    assert list(scores) == ["bleu", "chrf", "ter"]
    for theirs, ours in zip(printed, scores.values(), strict=True):
        assert ours.signature == theirs["signature"]
        assert ours.value == pytest.approx(theirs["score"], abs=1e-5)
        assert ours.low == pytest.approx(theirs["confidence_mean"] - theirs["confidence_var"], abs=1e-5)
        assert ours.high == pytest.approx(theirs["confidence_mean"] + theirs["confidence_var"], abs=1e-5)
    assert [score.name for score in scores.values()] == ["BLEU", "chrF", "TER"]


def test_tokenizer_and_case_are_those_of_the_sacrebleu_command(sacrebleu: Callable[..., str]) -> None:
    references, hypotheses = ["我们今天去看他。", "Das Haus IST rot."], ["我们今天去见他。", "das Haus ist rot."]
    options = [*ALL, "--tokenize", "zh", "--lowercase", "--chrf-lowercase"]
    printed = json.loads(sacrebleu(references, hypotheses, options=options))
    result = evaluate(hypotheses, references, intervals=False, tokenize="zh", lowercase=True)
    for theirs, ours in zip(printed, result.scores.values(), strict=True):
        assert ours.signature == theirs["signature"]
        assert ours.value == pytest.approx(theirs["score"], abs=1e-5)


def test_quick_scores_are_those_of_the_sacrebleu_command(
    references: list[str], spoil: Spoil, sacrebleu: Callable[..., str]
) -> None:
    hypotheses = spoil(0.3, 3)
    bleu, chrf = json.loads(sacrebleu(references, hypotheses, options=["-m", "bleu", "chrf"]))
    assert quick_bleu(hypotheses, references) == pytest.approx(bleu["score"], abs=1e-5)
    assert quick_chrf(hypotheses, references) == pytest.approx(chrf["score"], abs=1e-5)


def test_a_perfect_translation(references: list[str]) -> None:
    result = evaluate(references, references, samples=20)
    assert result.sentences == 200
    assert (result.bleu, result.chrf, result.ter) == pytest.approx((100, 100, 0))
    for score in result.scores.values():
        assert (score.low, score.high) == pytest.approx((score.value, score.value))
    assert quick_bleu(references, references) == pytest.approx(100)
    assert quick_chrf(references, references) == pytest.approx(100)


def test_a_worthless_translation() -> None:
    result = evaluate(["xx yy"] * 2, TWO, intervals=False)
    assert (result.bleu, result.chrf) == (0, 0)
    assert evaluate(["", ""], TWO, intervals=False).ter == pytest.approx(100)  # every word has to be inserted


def test_a_translation_of_which_some_samples_match_nothing_has_an_interval() -> None:
    found = evaluate(["a b c d e f", "x", "y", "z"], ["a b c d e f", "k l m n", "o p q r", "s t u v"])
    assert found.scores["bleu"].low < found.bleu < found.scores["bleu"].high


def test_the_interval_contains_the_score_and_repeats_with_its_seed(references: list[str], spoil: Spoil) -> None:
    hypotheses = spoil(0.2, 2)
    result = evaluate(hypotheses, references, metrics=["bleu", "chrf"], samples=100, seed=7)
    for score in result.scores.values():
        assert score.low is not None
        assert score.high is not None
        assert score.low < score.value < score.high
        assert "bs:100|seed:7" in score.signature
    assert evaluate(hypotheses, references, metrics=["bleu", "chrf"], samples=100, seed=7) == result
    other = evaluate(hypotheses, references, metrics=["bleu"], samples=100, seed=8)
    assert other.bleu == result.bleu
    assert other.scores["bleu"].low != result.scores["bleu"].low


@pytest.mark.parametrize("before", [None, "99"])
def test_the_environment_is_left_as_it_was(monkeypatch: pytest.MonkeyPatch, before: str | None) -> None:
    monkeypatch.delenv("SACREBLEU_SEED", raising=False)
    if before:
        monkeypatch.setenv("SACREBLEU_SEED", before)
    evaluate(TWO, TWO, metrics=["bleu"], samples=2, seed=7)
    assert os.environ.get("SACREBLEU_SEED") == before
    with pytest.raises(ConfigError):
        evaluate(TWO, TWO, tokenize="13b", seed=7)
    assert os.environ.get("SACREBLEU_SEED") == before


def test_exact_match_is_the_share_of_identical_sentences() -> None:
    assert exact_match(["a", "b", "c", "D"], ["a", "b", "x", "d"]) == 0.5


def test_as_dict_survives_json_and_leaves_out_what_was_not_computed() -> None:
    full = json.loads(json.dumps(evaluate(TWO, TWO, samples=2).as_dict()))
    assert full.keys() == {"sentences", "bleu", "chrf", "ter", "signature", "interval"}
    assert full["interval"]["ter"] == [0, 0]
    assert full["signature"]["bleu"].startswith("nrefs:1|")
    small = evaluate(TWO, TWO, metrics=["chrf"], intervals=False).as_dict()
    assert small.keys() == {"sentences", "chrf", "signature"}
    assert (small["sentences"], small["signature"].keys()) == (2, {"chrf"})


@pytest.mark.parametrize("function", [evaluate, quick_bleu, quick_chrf, exact_match])
def test_sentences_that_do_not_pair_up_are_counted(function: Callable[..., object]) -> None:
    with pytest.raises(InputError, match=r"1 hypotheses, 2 references.*same sentence"):
        function(["one"], ["one", "two"])
    with pytest.raises(InputError, match=r"nothing to score: 0 hypotheses, 0 references.*at least one"):
        function([], [])
    with pytest.raises(InputError, match=r"references are one text.*Split"):
        function(["one"], "o")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"metrics": ["blue"]}, r"'blue' is not a metric\. Did you mean 'bleu'\? Valid: bleu, chrf, ter\."),
        ({"metrics": []}, r"No metric.*bleu, chrf, ter"),
        ({"tokenize": "13b"}, r"tokenize='13b' is unknown\. Did you mean '13a'\?"),
        ({"samples": 1}, r"samples=1 cannot work.*2 or more"),
        ({"seed": 0}, r"seed=0 cannot work.*1 or more"),
    ],
)
def test_wrong_settings_are_named_with_their_remedy(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        evaluate(TWO, TWO, **options)


def test_a_tokenizer_that_cannot_be_set_up_is_named_with_its_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sacrebleu.tokenizers.tokenizer_ja_mecab.MeCab", None)  # as where it is not installed
    with pytest.raises(ConfigError, match=r"tokenize='ja-mecab' cannot be set up: .*pip install sacrebleu\[ja\].*char"):
        evaluate(TWO, TWO, tokenize="ja-mecab")


def test_a_score_that_was_not_computed_is_named() -> None:
    with pytest.raises(ConfigError, match=r"BLEU was not computed\. Add 'bleu'"):
        _ = evaluate(TWO, TWO, metrics=["chrf"], intervals=False).bleu


def test_importing_the_package_is_instant_because_sacrebleu_is_not_imported() -> None:
    code = "import sys, transduce.evaluation; print(sorted({'sacrebleu', 'numpy', 'torch'} & set(sys.modules)))"
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert result.stdout == "[]\n"


def test_text_that_is_said_to_be_tokenised_is_not_complained_of(caplog: pytest.LogCaptureFixture) -> None:
    lines = [f"number {number} ." for number in range(150)]
    evaluate(lines, lines, metrics=("bleu",), intervals=False)
    assert "detokenize" in caplog.text
    caplog.clear()
    evaluate(lines, lines, metrics=("bleu",), intervals=False, tokenize="none")
    assert caplog.text == ""
