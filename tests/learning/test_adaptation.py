"""A translator is adapted to other text: what it gained and what it forgot is measured and said."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

SETTINGS = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=64", "model.d_ff=128", "model.heads=4",
    "model.dropout=0", "tokenizer.vocab_size=320", "training.batch_tokens=512", "training.rate=0.005",
    "training.warmup=40", "training.schedule=inverse_sqrt", "training.average_decay=0.9", "training.label_smoothing=0",
    "training.validate_every=100", "training.weight_decay=0", "data.variants=0", "decoding.alpha=0.6",
]  # fmt: skip
ADAPTED = [
    "training.rate=0.005", "training.warmup=10", "training.average_decay=0.9", "training.validate_every=50",
    "decoding.alpha=0.6",
]  # fmt: skip
SOURCE = ["one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten"]
OLD = ["un", "deux", "trois", "quatre", "cinq", "six", "sept", "huit", "neuf", "dix"]
Transduce = Callable[..., Any]


def write(folder: Path, name: str, words: list[str], seed: int) -> list[Path]:
    """Numbers, and word by word what they become."""
    generator = random.Random(seed)
    rows = [[generator.randrange(10) for _ in range(4)] for _ in range(1200)]
    files = [folder / f"{name}.src", folder / f"{name}.tgt"]
    for path, side in zip(files, (SOURCE, words), strict=True):
        path.write_text("".join(" ".join(side[number] for number in row) + "\n" for row in rows), encoding="utf-8")
    return files


def test_both_dev_sets_are_measured_before_and_after(transduce: Transduce, tmp_path: Path) -> None:
    old = tmp_path / "old"
    transduce("train", *write(tmp_path, "old", OLD, 1), "-o", old, "--steps", 200, *SETTINGS)

    def adapted(name: str, words: list[str]) -> tuple[str, dict[str, list[float]]]:
        new = tmp_path / name
        files = write(tmp_path, f"{name}-text", words, 2)
        said = " ".join(transduce("train", *files, "--from", old, "-o", new, "--steps", 100, *ADAPTED).stdout.split())
        found = re.findall(r"(before|after): BLEU ([\d.]+) on the old dev set, BLEU ([\d.]+) on the new dev set", said)
        measured = {when: [float(value) for value in values] for when, *values in found}
        kept = json.loads((new / "scores.json").read_text())["adapted"]
        assert kept["from"] == str(old)
        assert list(kept["bleu"]["before"].values()) == pytest.approx(measured["before"], abs=0.06)
        assert (new / "tokenizer.model").read_bytes() == (old / "tokenizer.model").read_bytes()
        return said, measured

    said, measured = adapted("same", OLD)  # more of the same
    assert min(*measured["before"], *measured["after"]) > 60
    assert "Warning" not in said

    said, measured = adapted("other", OLD[::-1])  # whoever learns the new words loses the old ones
    assert measured["before"][0] > 60
    assert measured["before"][1] < 20
    assert measured["after"][0] < 30
    assert measured["after"][1] > 60
    lost = re.search(r"Warning: the model has lost ([\d.]+) BLEU", said)
    assert lost is not None
    assert float(lost[1]) == pytest.approx(measured["before"][0] - measured["after"][0], abs=0.11)
