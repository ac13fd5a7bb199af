"""Toy tasks as text files, and the command line to train on them."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
from tests import commands

SMALL_MODEL = [
    "model.encoder_layers=2", "model.decoder_layers=2", "model.d_model=64", "model.d_ff=256", "model.dropout=0",
    "tokenizer.vocab_size=300", "training.batch_tokens=512", "training.rate=0.006", "training.warmup=100",
    "training.average_decay=0.99", "training.validate_every=250", "training.weight_decay=0",
]  # fmt: skip


@pytest.fixture
def transduce() -> Callable[..., subprocess.CompletedProcess[str]]:
    """The command line; the test fails with its output if the exit code is not the expected one."""

    def run(*arguments: object, code: int = 0, text: str | None = None) -> subprocess.CompletedProcess[str]:
        result = commands.transduce(*arguments, text=text)
        assert result.returncode == code, result.stdout + result.stderr
        return result

    return run


@pytest.fixture
def small_model() -> list[str]:
    return SMALL_MODEL


@pytest.fixture
def write_digits(tmp_path: Path) -> Callable[[Callable[[list[str]], list[str]]], None]:
    """Writes train.src/.tgt and test.src/.tgt, the target being a function of the source's digits."""

    def write(transform: Callable[[list[str]], list[str]], pairs: int = 20_000) -> None:
        generator = random.Random(1)
        for name, count in (("train", pairs), ("test", 300)):
            sources = [[generator.choice("0123456789") for _ in range(generator.randint(4, 10))] for _ in range(count)]
            (tmp_path / f"{name}.src").write_text("".join(" ".join(each) + "\n" for each in sources))
            (tmp_path / f"{name}.tgt").write_text("".join(" ".join(transform(each)) + "\n" for each in sources))

    return write
