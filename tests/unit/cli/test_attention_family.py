"""`transduce attention` on models of every task."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.cli.main import main
from transduce.model.family import config_class, make_network
from transduce.text import Tokenizer, Vocabularies
from transduce.text.trees import symbols_of

TEXT = "They painted the bicycles."
LINES = ["We painted the house.", "They repaired the bicycles.", "Kofi understands the question."] * 3
SHAPE: dict[str, Any] = {"d_model": 24, "d_ff": 32, "heads": 3, "encoder_layers": 2, "decoder_layers": 2}
KINDS: dict[str, tuple[Any, ...]] = {
    "fills": ("encoder-only", "masked-language-model", SHAPE, []),
    "names": ("encoder-only", "classification", SHAPE | {"head": "sentence", "labels": 2}, ["glad", "sad"]),
    "tags": ("encoder-only", "tagging", SHAPE | {"head": "token", "labels": 2}, ["NOUN", "OTHER"]),
    "writes": ("decoder-only", "language-model", SHAPE, []),
    "parses": ("transformer", "parsing", SHAPE, []),
    "remembers": ("recurrent", "translation", {"d_model": 16, "hidden": 12, "attention_width": 8}, []),
    "sees": ("vision", "image-classification", SHAPE | {"labels": 10}, [str(digit) for digit in range(10)]),
}
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a model of chance for each task."""
    folder = tmp_path_factory.mktemp("models")
    for name, (network, task, shape, labels) in KINDS.items():
        tags, symbols = ["<mask>"] * (name == "fills"), symbols_of(["S", "NP"]) if name == "parses" else []
        tokenizer = Tokenizer.learn(LINES, 900, tags=tags, protected=symbols, documents=name == "writes")
        torch.manual_seed(3)
        size = 3 if network == "vision" else tokenizer.size
        described = asdict(config_class(network).base(vocab_size=size, **shape))
        weights = {key: value.detach() for key, value in make_network(network, described).named_parameters()}
        config = BundleConfig(architecture=described, network=network, task=task, labels=labels)
        vocabularies = None if network == "vision" else Vocabularies(tokenizer, tokenizer)
        Bundle.write(folder / name, config, weights, vocabularies, {}, "")
    return folder


@pytest.fixture
def run(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in an empty directory: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(model: str, *arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["transduce", "attention", str(models / model), *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        output = capsys.readouterr()
        return stopped.value.code, output.out, output.err

    return run


@pytest.mark.parametrize(
    ("model", "text", "header"),
    [
        ("fills", "They [MASK] the bicycles.", "mask filled with probability"),
        ("names", TEXT, "label probability"),
        ("tags", TEXT, "word tag probability"),
        ("writes", TEXT, "word probability looks most at share"),
        ("sees", "mnist:17", "label probability"),
    ],
)
def test_each_task_has_its_page_and_its_table(run: Run, tmp_path: Path, model: str, text: str, header: str) -> None:
    code, out, error = run(model, text, "--layer", "2", "--head", "1")
    assert (code, error) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert lines[0] == text
    assert header in lines
    assert lines[-1] == "Wrote attention.html: open it in a browser."
    page = (tmp_path / "attention.html").read_text(encoding="utf-8")
    assert '"layer":2,"heads":[1]' in page
    assert f"<title>Attention: {text}</title>" in page


@pytest.mark.parametrize("model", ["fills", "names", "tags", "writes", "sees"])
def test_each_task_as_a_picture_and_as_numbers(run: Run, tmp_path: Path, model: str) -> None:
    given = "mnist:0" if model == "sees" else TEXT
    code, _, error = run(model, given, "-o", "a.png", "--layer", "1", "--head", "2")
    assert (code, error) == (0, "")
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    code, out, _ = run(model, given, "--json")
    found = json.loads(out)
    assert (code, list(found["maps"])) == (0, ["decoder" if model == "writes" else "encoder"])
    assert found["model"] == model


def test_additive_alignment_is_all_that_a_recurrent_network_has(run: Run, tmp_path: Path) -> None:
    code, out, error = run("remembers", TEXT, "--target", "We painted it.", "-o", "a.png")
    assert (code, error) == (0, "")
    assert "looks most at" in out
    assert (tmp_path / "a.png").read_bytes().startswith(b"\x89PNG")
    found = json.loads(run("remembers", TEXT, "--target", "We painted it.", "--json")[1])
    assert list(found["maps"]) == ["cross"]
    assert found["maps"]["cross"]["shape"][:2] == [1, 1]


def test_a_tree_is_looked_at_bracket_by_bracket(run: Run) -> None:
    code, out, error = run("parses", "They painted it.", "--json", "--beam", "1")
    assert (code, error) == (0, "")
    found = json.loads(out)
    read = [word["text"] for word in found["source"]["words"]]
    assert read == ["They", "painted", "it", ".", "end"]
    written = [word["text"] for word in found["target"]["words"]]
    words = [each for each in written if each.startswith("*")]
    assert set(written) - set(words) <= {"(S", ")S", "(NP", ")NP", "end"}
    assert len(words) == 4


def test_a_tag_stands_beside_each_word(run: Run) -> None:
    _, out, _ = run("tags", TEXT)
    rows = [line.split() for line in out.splitlines()]
    assert [row[0] for row in rows if len(row) == 3 and row[1] in ("NOUN", "OTHER")] == TEXT.split()


def test_line_ends_are_read_and_what_comes_next_is_said(run: Run, tmp_path: Path) -> None:
    code, out, _ = run("writes", "We painted\n\nthe house.", "--subwords")
    assert code == 0
    assert [line.split()[0] for line in out.splitlines() if "%" in line].count("↵") >= 2
    assert "\nNext: " in out
    page = (tmp_path / "attention.html").read_text(encoding="utf-8")
    assert page.count("\\n") >= 2


def test_a_text_without_a_mask_is_looked_at_and_the_way_to_mask_is_said(run: Run) -> None:
    code, out, _ = run("fills", TEXT)
    assert code == 0
    assert "write [MASK] for a word" in out


def test_a_picture_of_a_file(run: Run, tmp_path: Path) -> None:
    pictures = np.random.default_rng(1).integers(0, 256, (3, 28, 28), dtype=np.uint8)
    np.save(tmp_path / "mine.npy", pictures)
    code, out, error = run("sees", "mine.npy", "--index", "2", "--json")
    assert (code, error) == (0, "")
    found = json.loads(out)
    assert found["title"] == "mine.npy:2"
    assert found["picture"]["numbers"] == pictures[2].tolist()


@pytest.mark.parametrize(
    ("model", "arguments", "message"),
    [
        ("fills", [TEXT, "--kind", "cross"], "the model has no cross attention. It has: encoder."),
        ("writes", [TEXT, "--kind", "encoder"], "the model has no encoder attention. It has: decoder."),
        (
            "remembers",
            [TEXT, "--target", "x", "--kind", "encoder"],
            "the model has no encoder attention. It has: cross.",
        ),
        ("sees", ["mnist:0", "--kind", "decoder"], "the model has no decoder attention. It has: encoder."),
        ("names", [""], "there is no text to look at. Give a sentence."),
        ("writes", [""], "there is no text to look at."),
        (
            "names",
            [TEXT, "--target", "x"],
            "--target is for a model that translates; this one's task is classification.",
        ),
        ("writes", [TEXT, "--beam", "2"], "--beam is for a model that searches for what to write"),
        ("names", [TEXT, "--index", "1"], "--index is for a model of pictures; this one's task is classification."),
        ("parses", [TEXT, "--to", "de"], "--to is for a model that translates; this one's task is parsing."),
        ("parses", ["  "], "there is no text to look at. Give a sentence."),
        ("sees", ["mnist:1000"], "mnist has no picture '1000'. They are counted from 0 to 999: mnist:0."),
        ("sees", ["mnist", "--index", "1000"], "mnist: there is no picture 1000. Pictures are counted from 0 to 999."),
        ("sees", ["nowhere.npy"], "there is no such file."),
        ("sees", ["mnist:0", "--head", "4"], "there is no head 4: heads are counted from 1 to 3."),
    ],
)
def test_a_mistake_is_answered_in_words_and_nothing_is_written(
    run: Run, tmp_path: Path, model: str, arguments: list[str], message: str
) -> None:
    code, out, error = run(model, *arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(error.split())
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []
