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
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32", "model.d_ff=64", "model.heads=4",
    "model.dropout=0", "tokenizer.vocab_size=320", "training.batch_tokens=512", "training.rate=0.01",
    "training.warmup=40", "training.schedule=inverse_sqrt", "training.average_decay=0.9", "training.label_smoothing=0",
    "training.validate_every=75",
]  # fmt: skip
ADAPTED = ["training.rate=0.005", "training.warmup=10", "training.average_decay=0.9", "training.validate_every=50"]
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


def scores(text: str) -> dict[str, list[float]]:
    """BLEU of each line that says before or after."""
    joined = " ".join(text.split())
    found = re.findall(r"(before|after): BLEU ([\d.]+) on the old dev set, BLEU ([\d.]+) on the new dev set", joined)
    return {name: [float(value) for value in values] for name, *values in found}


@pytest.mark.parametrize("forgets", [True, False])
def test_both_dev_sets_are_measured_before_and_after(transduce: Transduce, tmp_path: Path, forgets: bool) -> None:
    old, new = tmp_path / "old", tmp_path / "new"
    transduce("train", *write(tmp_path, "old", OLD, 1), "-o", old, "--steps", 150, *SETTINGS)
    # The same words turned round: whoever learns the new ones loses the old ones. Or more of the same.
    words = OLD[::-1] if forgets else OLD
    command = ["train", *write(tmp_path, "new", words, 2), "--from", old, "-o", new, "--steps", 100, *ADAPTED]
    said = transduce(*command).stdout
    measured = scores(said)
    before, after = measured["before"], measured["after"]
    assert before[0] > 90
    assert after[1] > 90
    kept = json.loads((new / "scores.json").read_text())["adapted"]
    assert kept["from"] == str(old)
    assert kept["bleu"]["before"]["old dev set"] == pytest.approx(before[0], abs=0.06)
    assert (new / "tokenizer.model").read_bytes() == (old / "tokenizer.model").read_bytes()
    if forgets:
        assert before[1] < 20
        assert after[0] < 50
        lost = re.search(r"Warning: the model has lost ([\d.]+) BLEU", " ".join(said.split()))
        assert lost is not None
        assert float(lost[1]) == pytest.approx(before[0] - after[0], abs=0.11)
    else:
        assert "Warning" not in said
