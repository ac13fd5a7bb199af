"""Shortlists: what a piece can become is learned from pairs, a compiled model tries nothing else, at little cost."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from transduce.bundle import Bundle, find_model
from transduce.confidence import Confidence
from transduce.data.builtin import builtin_corpus
from transduce.errors import BundleError, ConfigError, InputError
from transduce.evaluation import quick_bleu
from transduce.interop import shortlist
from transduce.interop.shortlist import learn_shortlist, write_shortlist
from transduce.text import Tokenizer, Vocabularies
from transduce.translator import Translator

NUMBERS = ["one", "two", "three", "four", "five", "six", "seven"]
ZAHLEN = ["eins", "zwei", "drei", "vier", "funf", "sechs", "sieben"]
PAIRS = [
    (f"{NUMBERS[i]} and {NUMBERS[j]}", f"{ZAHLEN[i]} und {ZAHLEN[j]}") for i in range(7) for j in range(7) if i != j
]


@pytest.fixture(scope="module")
def vocabularies() -> Vocabularies:
    return Vocabularies.learn(PAIRS, 340)


@pytest.fixture
def ids(vocabularies: Vocabularies) -> list[tuple[list[int], list[int]]]:
    return [(vocabularies.source.encode(source), vocabularies.target.encode(target)) for source, target in PAIRS]


@pytest.mark.parametrize("at_once", [1, 100, 4_000_000])
def test_a_word_is_listed_with_its_translation_and_not_with_others(
    vocabularies: Vocabularies,
    ids: list[tuple[list[int], list[int]]],
    monkeypatch: pytest.MonkeyPatch,
    at_once: int,
) -> None:
    monkeypatch.setattr(shortlist, "AT_ONCE", at_once)
    monkeypatch.setattr(shortlist, "PER_PIECE", 2)
    monkeypatch.setattr(shortlist, "ALWAYS", 1)
    *lists, always = learn_shortlist(ids, vocabularies)
    assert len(lists) == vocabularies.source.size
    pieces = vocabularies.source.all_pieces()
    place = {piece: index for index, piece in enumerate(pieces)}
    for number, zahl in zip(NUMBERS, ZAHLEN, strict=True):
        assert place[f"▁{zahl}"] in lists[place[f"▁{number}"]]
        assert sum(place[f"▁{other}"] in lists[place[f"▁{number}"]] for other in ZAHLEN) <= 2
    assert [pieces[each] for each in always] == ["▁und"]
    assert all(index in row for index, row in enumerate(lists))  # a name is often copied


def test_the_same_pairs_give_the_same_file(
    vocabularies: Vocabularies, ids: list[tuple[list[int], list[int]]], tmp_path: Path
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        write_shortlist(learn_shortlist(iter(ids), vocabularies), vocabularies, tmp_path / name)
    contents = (tmp_path / "one" / "vmap.txt").read_text(encoding="utf-8")
    assert contents == (tmp_path / "other" / "vmap.txt").read_text(encoding="utf-8")
    lines = contents.splitlines()
    assert len(lines) == vocabularies.source.size + 1
    assert lines[-1].startswith("\t")
    assert all(line.count("\t") == 1 for line in lines)


def test_each_side_may_have_a_vocabulary_of_its_own() -> None:
    apart = Vocabularies.learn(PAIRS, 310, shared=False)
    ids = [(apart.source.encode(source), apart.target.encode(target)) for source, target in PAIRS]
    *lists, _ = learn_shortlist(ids, apart)
    assert len(lists) == apart.source.size
    seven = apart.source.all_pieces().index("▁seven")
    assert apart.target.all_pieces().index("▁sieben") in lists[seven]


def test_no_pairs_are_refused(vocabularies: Vocabularies) -> None:
    with pytest.raises(InputError, match="no pairs"):
        learn_shortlist([], vocabularies)


# With the built-in model


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in model, with a shortlist learned from a part of its corpus."""
    path = tmp_path_factory.mktemp("models") / "short"
    shutil.copytree(find_model("en-de"), path)
    pairs = [pair for index, pair in enumerate(builtin_corpus("tatoeba-en-de").pairs()) if index % 3 == 0]
    tokenizer = Tokenizer.load(path / "tokenizer.model")
    ids = zip(*(tokenizer.encode_batch(side) for side in zip(*pairs, strict=True)), strict=True)
    vocabularies = Vocabularies(tokenizer, tokenizer)
    write_shortlist(learn_shortlist(ids, vocabularies), vocabularies, path / "ctranslate2")
    return path


def test_with_a_shortlist_there_is_no_confidence(model: Path) -> None:
    """Probabilities among few words are higher: who learned to trust those among all would be too sure."""
    signs = {"token_probability": 0.9, "sentence_probability": 0.0, "length": 0.0, "odd_length": 0.0}
    sure = Confidence(base=0.1, **signs, usual_ratio=0.0, shortest=1, longest=9)  # type: ignore[arg-type]
    bundle = Bundle.open(model)
    bundle = replace(bundle, config=replace(bundle.config, confidence=sure))
    plain, short = (Translator(bundle, shortlist=each).translate("Thank you.") for each in (False, True))
    assert plain.confidence is not None
    assert short.confidence is None


def test_a_shortlist_costs_little(model: Path) -> None:
    pairs = list(builtin_corpus("tatoeba-en-de", "test").pairs())[::4]
    sources, references = [pair.source for pair in pairs], [pair.target for pair in pairs]
    plain, short = (Translator.load(model, shortlist=shortlist) for shortlist in (False, True))
    theirs, ours = ([each.text for each in one.translate(sources)] for one in (plain, short))
    same = sum(one == other for one, other in zip(theirs, ours, strict=True)) / len(sources)
    assert 0.75 < same < 1  # 1: it is not used at all
    assert quick_bleu(ours, references) > quick_bleu(theirs, references) - 2
    assert not any("⁇" in text or "<" in text for text in ours)


def test_the_command_uses_it(model: Path) -> None:
    command = [sys.executable, "-m", "transduce", "translate", "--shortlist", "-m", str(model), "Where is the station?"]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert result.stdout == "Wo ist der Bahnhof?\n"


def test_a_model_without_one_says_how_to_get_it() -> None:
    with pytest.raises(BundleError, match=r"has no shortlist.*--shortlist CORPUS"):
        Translator.load("en-de", shortlist=True)
    with pytest.raises(ConfigError, match="PyTorch knows no shortlist"):
        Translator.load("en-de", engine="torch", shortlist=True)


def test_export_learns_one_and_reports_its_cost(tmp_path: Path) -> None:
    pairs = list(builtin_corpus("tatoeba-en-de", "dev").pairs())
    (tmp_path / "text.tsv").write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs), encoding="utf-8")
    command = [sys.executable, "-m", "transduce", "export", "en-de", "-o", "out", "--shortlist", "text.tsv", "--json"]
    result = subprocess.run(
        [*command, "--verify-sentences", "50"],
        cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["shortlist"]["bleu"] == report["parity"]["exported_bleu"]
    assert report["shortlist"]["bleu_difference"] == pytest.approx(
        report["shortlist"]["exported_bleu"] - report["shortlist"]["bleu"]
    )
    assert json.loads((tmp_path / "out" / "shortlist.json").read_text(encoding="utf-8")) == report["shortlist"]


@pytest.mark.parametrize("enough", [True, False])
def test_training_learns_one_where_the_vocabulary_is_large_enough(tmp_path: Path, enough: bool) -> None:
    for name, side in (("text.en", 0), ("text.de", 1)):
        lines = [f"{pair[side]} {number}" for number in range(4) for pair in PAIRS]
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    code = (
        "import transduce.interop.shortlist as module\n"
        f"module.WORTHWHILE = {200 if enough else 5000}\n"
        "from transduce.cli.main import main; main()"
    )
    shape = ["d_model=16", "d_ff=16", "heads=2", "encoder_layers=1", "decoder_layers=1"]
    command = [sys.executable, "-c", code, "train", "text.en", "text.de", "-o", "model", "--steps", "1"]
    settings = ["tokenizer.vocab_size=340", *(f"model.{each}" for each in shape)]
    result = subprocess.run(
        [*command, *settings], cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False
    )
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "model" / "ctranslate2" / "vmap.txt").is_file() is enough
    assert ("--shortlist" in result.stdout) is enough
    if enough:
        report = json.loads((tmp_path / "model" / "ctranslate2" / "shortlist.json").read_text(encoding="utf-8"))
        assert report["sentences"] > 0
        assert report["bleu_difference"] is not None
