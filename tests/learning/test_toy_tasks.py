"""From two text files to a translator, through the command line: copy, reverse and sort are learned."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("transform", "steps", "options"),
    [(list, 250, ["--allow-identical"]), (lambda digits: digits[::-1], 400, []), (sorted, 300, [])],
    ids=["copy", "reverse", "sort"],
)
def test_digits_are_learned_to_99_percent(
    transform: Callable[[list[str]], list[str]],
    steps: int,
    options: list[str],
    write_digits: Callable[..., None],
    transduce: Callable[..., Any],
    small_model: list[str],
    tmp_path: Path,
) -> None:
    write_digits(transform)
    model = tmp_path / "model"
    trained = transduce(
        "train", tmp_path / "train.src", tmp_path / "train.tgt", "-o", model, "--steps", steps, *options, *small_model
    )
    assert f"Finished at step {steps}" in trained.stdout
    transduce("translate", "-m", model, "-i", tmp_path / "test.src", "-o", tmp_path / "out.txt")
    translations, references = ((tmp_path / name).read_text().splitlines() for name in ("out.txt", "test.tgt"))
    right = sum(ours == theirs for ours, theirs in zip(translations, references, strict=True))
    assert right / len(references) >= 0.99

    report = json.loads(transduce("evaluate", model, tmp_path / "test.src", tmp_path / "test.tgt", "--json").stdout)
    assert report["bleu"] > 98
    assert report["chrf"] > 98
    assert "version:" in report["signature"]["bleu"]
    # Where all lengths are right already, the paper's penalty stays; all that were tried are told.
    assert "Length penalty α 0.6: BLEU" in trained.stdout
    assert len(json.loads((model / "scores.json").read_text())["length_penalty"]["bleu"]) == 5
    # Nearly all is right, and the model has learned on its dev set that it can be trusted.
    assert "Confidence is off by" in trained.stdout
    assert report["calibration"]["error"] < 0.02
    assert report["calibration"]["confidence"] > 0.95
    assert json.loads((model / "scores.json").read_text())["calibration"]["error"] < 0.02
    scores = transduce("score", model, tmp_path / "test.src", tmp_path / "test.tgt").stdout.splitlines()
    assert len(scores) == 300
    assert all(float(line.split("\t")[1]) > -0.5 for line in scores[:20])
