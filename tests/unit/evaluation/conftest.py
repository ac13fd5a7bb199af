"""A corpus of made-up sentences, and translations of it with a chosen share of wrong words."""

from __future__ import annotations

import os
import random
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

WORDS = [
    "the",
    "a",
    "cat",
    "dog",
    "house",
    "sees",
    "eats",
    "big",
    "small",
    "red",
    "and",
    ",",
    "near",
    "bread",
    "Tuesday",
]


@pytest.fixture
def references() -> list[str]:
    chance = random.Random(1)
    return [" ".join(chance.choices(WORDS, k=chance.randint(4, 25))) for _ in range(200)]


@pytest.fixture
def spoil(references: list[str]) -> Callable[[float, int], list[str]]:
    """The references with a share of their words replaced by an unknown one."""

    def spoil(share: float, seed: int) -> list[str]:
        chance = random.Random(seed)
        return [
            " ".join("wrong" if chance.random() < share else word for word in sentence.split())
            for sentence in references
        ]

    return spoil


@pytest.fixture
def sacrebleu(tmp_path: Path) -> Callable[..., str]:
    """What the `sacrebleu` command prints about some systems."""

    def run(references: Sequence[str], *systems: Sequence[str], options: Sequence[str]) -> str:
        files = []
        for number, lines in enumerate([references, *systems]):
            files.append(tmp_path / str(number))
            files[-1].write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        command = [sys.executable, "-m", "sacrebleu", str(files[0]), "-i", *map(str, files[1:]), "-w", "6", *options]
        # A seed in the environment of whoever runs the tests must not decide them.
        environment = {**os.environ, "PYTHONIOENCODING": "utf-8", "SACREBLEU_SEED": "12345"}
        return subprocess.run(command, capture_output=True, encoding="utf-8", check=True, env=environment).stdout

    return run
