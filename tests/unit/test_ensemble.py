"""Models beside each other, from text to text: what fits together, what is refused, and in whose words."""

from __future__ import annotations

import json
import shutil
import subprocess
from dataclasses import asdict
from pathlib import Path

import pytest
import torch
from tests import commands

from transduce.bundle import Bundle, BundleConfig
from transduce.errors import BundleError, ConfigError
from transduce.evaluation import evaluate
from transduce.model import Transformer, TransformerConfig
from transduce.text import Tokenizer, Vocabularies
from transduce.translator import Translator

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip
SHORT = {"max_length_extra": 4, "guard": False}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Random models: `one` and `two` of one vocabulary, `small` of another."""
    folder = tmp_path_factory.mktemp("models")
    for name, seed, size in (("one", 1, 300), ("two", 2, 300), ("small", 3, 290)):
        tokenizer = Tokenizer.learn(LINES, size)
        torch.manual_seed(seed)
        shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tying": "none"}
        model = Transformer(TransformerConfig.tiny(tokenizer.size, **shape))
        weights = {name: value.detach() for name, value in model.named_parameters()}
        config = BundleConfig(architecture=asdict(model.config), source_language="en", target_language="xx")
        Bundle.write(folder / name, config, weights, Vocabularies(tokenizer, tokenizer), {}, "")
    return folder


def test_each_has_a_say_in_every_word(folder: Path) -> None:
    together = Translator.load(folder / "one", beside=[folder / "two"])
    alone = [Translator.load(folder / name) for name in ("one", "two")]
    for target in LINES[:3]:
        token = together.score(LINES[5], target).token_scores[0]
        mean = sum(torch.tensor(each.score(LINES[5], target).token_scores[0]).exp() for each in alone) / 2
        assert token == pytest.approx(float(mean.log()), abs=1e-5)
    texts = [each.text for each in together.translate(LINES, **SHORT)]
    others = [[each.text for each in translator.translate(LINES, **SHORT)] for translator in alone]
    assert texts not in others
    swapped = Translator.load(folder / "two", beside=[folder / "one"])
    assert [each.text for each in swapped.translate(LINES, **SHORT)] == texts


def test_confidence_of_one_model_is_not_said_of_several(folder: Path, tmp_path: Path) -> None:
    calibrated = tmp_path / "calibrated"
    shutil.copytree(folder / "one", calibrated)
    config = json.loads((calibrated / "config.json").read_text())
    names = ("base", "token_probability", "sentence_probability", "length", "odd_length", "usual_ratio")
    config["confidence"] = dict.fromkeys(names, 0.0) | {"base": 0.5, "shortest": 1, "longest": 50}
    (calibrated / "config.json").write_text(json.dumps(config))
    assert Translator.load(calibrated).translate(LINES[0], **SHORT).confidence is not None
    assert Translator.load(calibrated, beside=[folder / "two"]).translate(LINES[0], **SHORT).confidence is None


def test_what_does_not_fit_is_refused(folder: Path) -> None:
    with pytest.raises(BundleError, match="vocabulary is not that of") as refused:
        Translator.load(folder / "one", beside=[folder / "small"])
    assert refused.value.where == str(folder / "small")
    with pytest.raises(ConfigError, match="run by PyTorch, without ctranslate2"):
        Translator.load(folder / "one", "ctranslate2", beside=[folder / "two"])
    with pytest.raises(ConfigError, match="without a shortlist"):
        Translator.load(folder / "one", shortlist=True, beside=[folder / "two"])


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return commands.transduce(*arguments)


def test_translate_and_evaluate_take_models_beside_it(folder: Path, tmp_path: Path) -> None:
    one, two = str(folder / "one"), str(folder / "two")
    (tmp_path / "text.tsv").write_text("".join(f"{line}\t{line}\n" for line in LINES[:4]))
    translated = run("translate", "-m", one, "--with", two, "--with", two, "--json", LINES[0])
    assert translated.returncode == 0, translated.stderr
    expected = Translator.load(one, beside=[two, two]).translate(LINES[0])
    assert json.loads(translated.stdout)["translation"] == expected.text
    measured = run("evaluate", one, str(tmp_path / "text.tsv"), "--with", two, "--json")
    assert measured.returncode == 0, measured.stderr
    written = [each.text for each in Translator.load(one, beside=[two]).translate(LINES[:4])]
    assert json.loads(measured.stdout)["chrf"] == pytest.approx(evaluate(written, LINES[:4]).chrf)


def test_a_folder_is_not_written_by_several(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "text").write_text("We painted.\n")
    one, two, out = str(folder / "one"), str(folder / "two"), f"{tmp_path}/out/"
    refused = run("translate", "-m", one, "--with", two, "-i", str(tmp_path / "text"), "-o", out)
    assert (refused.returncode, Path(out).exists()) == (2, False)
    assert "--with is not for a folder" in refused.stderr
