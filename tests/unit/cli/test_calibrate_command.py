"""`transduce calibrate`, and what `evaluate` and `translate` say from then on."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import pytest
import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.cli.main import main
from transduce.model import Transformer, TransformerConfig
from transduce.text import Vocabularies
from transduce.translator import Translator

WORDS = ("We", "They", "Kofi", "Ama", "painted", "understand", "repaired", "house", "bicycles", "question")
SOURCES = [f"{one} {two} {three}." for one in WORDS[:7] for two in WORDS[4:7] for three in WORDS[7:]]
REFERENCES = [source.upper() for source in SOURCES]
TEXT = "We painted house."

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def bundle(tmp_path: Path) -> Bundle:
    """A random model."""
    vocabularies = Vocabularies.learn(list(zip(SOURCES, REFERENCES, strict=True)), 320, shared=True)
    torch.manual_seed(5)
    shape = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "tying": "none"}
    model = Transformer(TransformerConfig.tiny(vocabularies.source.size, **shape))
    weights = {name: value.detach() for name, value in model.named_parameters()}
    short = {"max_length_extra": 4}  # a random model seldom ends a sentence by itself
    config = BundleConfig(architecture=asdict(model.config), decoding=short)
    return Bundle.write(tmp_path / "model", config, weights, vocabularies, {}, "")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command line, where few.en, dev.en and dev.de lie: exit code, output and what it says aside."""
    for name, lines in (("dev.en", SOURCES), ("dev.de", REFERENCES), ("few.en", SOURCES[:3])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines))
    monkeypatch.chdir(tmp_path)

    def run(*arguments: object) -> tuple[int, str, str]:
        monkeypatch.setattr(sys, "argv", ["transduce", *map(str, arguments)])
        with pytest.raises(SystemExit) as ended:
            main()
        output = capsys.readouterr()
        return int(ended.value.code or 0), output.out, output.err

    return run


def test_calibrate_then_evaluate_then_translate(bundle: Bundle, run: Run) -> None:
    files = ("dev.en", "dev.de")
    assert run("translate", "-m", "model", "--scores", TEXT)[1].split("\t")[1] == "-"
    assert "calibration" not in json.loads(run("evaluate", "model", *files, "--json")[1])

    code, said, aside = run("calibrate", "model", *files)
    assert (code, aside) == (0, "")
    noted = json.loads((bundle.path / "scores.json").read_text())["calibration"]
    assert f"off by {noted['error']:.3f} (calibration error, {len(SOURCES)} sentences)" in said

    report = json.loads(run("evaluate", "model", *files, "--json")[1])["calibration"]
    assert report["sentences"] == len(SOURCES)
    assert 0 <= report["error"] < 0.05
    assert f"Confidence is off by {report['error']:.3f}" in run("evaluate", "model", *files)[1]

    expected = Translator.load("model").translate(TEXT, n_best=2)
    entry = json.loads(run("translate", "-m", "model", "--json", "--n-best", 2, TEXT)[1])
    assert entry["confidence"] == pytest.approx(expected.confidence)
    ways = [each["confidence"] for each in entry["alternatives"]]
    assert ways == pytest.approx([each.confidence for each in expected.alternatives])
    _, lines, _ = run("translate", "-m", "model", "--scores", TEXT)
    assert lines == f"{expected.score:.4f}\t{expected.confidence:.2f}\t{expected.text}\n"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["en-de", "tatoeba-en-de"], "en-de is built in and stays as it is. Copy its directory"),
        (["nothing", "tatoeba-en-de"], "there is no model here"),
        (["model", "tatoeba-en-dd"], "Did you mean 'tatoeba-en-de'?"),
        (["model", "few.en", "few.en"], "3 texts are too few to learn a confidence from. Give at least 50."),
    ],
)
def test_mistakes_are_answered_in_words(bundle: Bundle, run: Run, arguments: list[str], words: str) -> None:
    before = {file.name: file.read_bytes() for file in bundle.path.iterdir()}
    code, said, aside = run("calibrate", *arguments)
    assert (code, said) == (2, "")
    assert words in " ".join(aside.split())
    assert {file.name: file.read_bytes() for file in bundle.path.iterdir()} == before
