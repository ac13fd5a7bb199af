"""A run of any task that was left and gone on with ends with the weights of one that was not, bit for bit."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from transduce.bundle import Bundle
from transduce.cli.main import app

LINES = [f"{subject} {verb} the {thing}{mark}" for subject in ("We", "They", "Kofi and Ama", "Nobody")
         for verb in ("painted", "understand", "repaired", "will find") for thing in ("house", "bicycles", "question")
         for mark in (".", "!", "?")]  # fmt: skip
SMALL = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=16", "model.d_ff=32", "model.heads=2",
    "model.dropout=0.1", "training.batch_tokens=300", "training.validate_every=4", "training.checkpoint_every=3",
    "training.warmup=4", "training.schedule=inverse_sqrt",
]  # fmt: skip
WORDS = ["tokenizer.vocab_size=400", "training.word_dropout=0.1"]
TASKS: dict[str, list[str]] = {
    "language-model": ["objective.context=24", "tokenizer.kind=bpe", *WORDS],
    "masked-language-model": WORDS,
    "classification": ["tokenizer.dropout=0.1", "training.r_drop=1.0", *WORDS],
    "tagging": WORDS,
    "image-classification": ["model.patch=2"],
    "span-corruption": WORDS,
    "text-to-text": WORDS,
}


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Path]]:
    """What each task learns from."""
    folder = tmp_path_factory.mktemp("data")

    def write(name: str, lines: list[str]) -> Path:
        (folder / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return folder / name

    plain = write("plain.txt", LINES)
    images, labels = folder / "images.npy", folder / "labels.npy"
    np.save(images, np.random.default_rng(1).integers(0, 256, (200, 4, 4)).astype(np.uint8))
    np.save(labels, np.arange(200) % 3)
    return {
        "language-model": [plain],
        "masked-language-model": [plain],
        "span-corruption": [plain],
        "classification": [write("labelled.tsv", [f"{line[-1]}\t{line}" for line in LINES])],
        "tagging": [write("tagged.tsv", [f"{line}\t{' '.join(word[0] for word in line.split())}" for line in LINES])],
        "image-classification": [images, labels],
        "text-to-text": [plain, write("upper.txt", [line.upper() for line in LINES])],
    }


@pytest.fixture
def train(data: dict[str, list[Path]]) -> Callable[..., None]:
    def train(task: str, model: Path, steps: int, *more: object) -> None:
        arguments = ["train", *data[task], "--recipe", task, "-o", model, "--steps", steps, *SMALL, *TASKS[task], *more]
        result = CliRunner().invoke(app, [str(each) for each in arguments])
        assert result.exit_code == 0, (result.output, result.exception)

    return train


def weights(model: Path) -> bytes:
    return (model / "model.safetensors").read_bytes()


@pytest.mark.parametrize("task", TASKS)
def test_a_run_in_parts_equals_one_without_a_break(task: str, train: Callable[..., None], tmp_path: Path) -> None:
    train(task, tmp_path / "whole", 13)
    for steps in (5, 13):
        train(task, tmp_path / "parts", steps)
    events = [json.loads(line) for line in (tmp_path / "parts" / "log.jsonl").read_text().splitlines()]
    assert [event["step"] for event in events if event["event"] == "Resumed"] == [5]
    assert max(event["epoch"] for event in events if event["event"] == "Stepped") >= 1, "in its second epoch at least"
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole")
    assert len(weights(tmp_path / "whole")) > 1000
    bundle = Bundle.open(tmp_path / "whole")
    assert bundle.config.task == ("text-to-text" if task == "span-corruption" else task)
    assert (tmp_path / "whole" / "training.html").exists()
    assert (tmp_path / "whole" / "README.md").read_text(encoding="utf-8").startswith("# whole")


def test_what_was_begun_from_another_model_is_gone_on_with_too(train: Callable[..., None], tmp_path: Path) -> None:
    train("masked-language-model", tmp_path / "old", 4)
    begin = ["--from", tmp_path / "old"]
    train("classification", tmp_path / "whole", 9, *begin)
    for steps in (4, 9):
        train("classification", tmp_path / "parts", steps, *begin)
    train("classification", tmp_path / "fresh", 9)
    assert weights(tmp_path / "parts") == weights(tmp_path / "whole") != weights(tmp_path / "fresh")
    models = [(tmp_path / name / "tokenizer.model").read_bytes() for name in ("old", "whole")]
    assert models[0] == models[1], "the vocabulary is kept"
