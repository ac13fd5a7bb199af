"""A crew of ranks, a toy corpus, and what they make of it."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file
from torch import Tensor

SETTINGS = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32", "model.d_ff=64", "model.dropout=0.0",
    "tokenizer.vocab_size=300", "training.batch_tokens=256", "training.validate_every=10",
    "training.checkpoint_every=10", "training.optimizer=adam", "training.cooldown=0.0", "data.variants=0.0",
    "training.rate=0.005", "training.warmup=10",
]  # fmt: skip

Outcome = list[tuple[int, str]]
Train = Callable[..., Outcome]


@pytest.fixture(scope="module")
def text(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Letters and the same backwards, in files for training and as a dev set."""
    folder, generator = tmp_path_factory.mktemp("text"), random.Random(5)
    for name, count in (("train", 700), ("dev", 41)):
        rows = [[generator.choice("abcdefghij") for _ in range(generator.randint(2, 9))] for _ in range(count)]
        (folder / f"{name}.en").write_text("".join(" ".join(row) + "\n" for row in rows), encoding="utf-8")
        (folder / f"{name}.de").write_text("".join(" ".join(row[::-1]) + "\n" for row in rows), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def arguments(text: Path) -> Callable[..., list[str]]:
    def made(output: Path, *more: str, steps: int = 20) -> list[str]:
        files = [str(text / "train.en"), str(text / "train.de"), "--dev-source", str(text / "dev.en")]
        files += ["--dev-target", str(text / "dev.de"), "--recipe", "small-corpus", "--rank-timeout", "20"]
        return ["train", *files, "-o", str(output), "--steps", str(steps), *SETTINGS, *more]

    return made


@pytest.fixture(scope="session")
def crew() -> Iterator[Callable[[int, list[str]], Outcome]]:
    if not hasattr(os, "fork"):
        pytest.skip("needs fork")
    command = [sys.executable, "-m", "tests.ranks.crew"]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    with subprocess.Popen(
        command,
        cwd=Path(__file__).parents[2],
        env=environment,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None

        def run(count: int, arguments: list[str]) -> Outcome:
            print(json.dumps({"count": count, "arguments": arguments}), file=process.stdin, flush=True)
            return [(code, said) for code, said in json.loads(process.stdout.readline())]

        yield run
        process.stdin.close()


@pytest.fixture
def train(crew: Callable[[int, list[str]], Outcome], arguments: Callable[..., list[str]]) -> Train:
    """Train with so many ranks; all must end well."""

    def run(count: int, output: Path, *more: str, steps: int = 20) -> Outcome:
        outcome = crew(count, arguments(output, *more, steps=steps))
        assert [code for code, _ in outcome] == [0] * count, "\n".join(said for _, said in outcome)
        return outcome

    return run


def checkpoint(model: Path, step: int) -> dict[str, Tensor]:
    return load_file(model / "run" / "checkpoints" / f"step-{step}" / "tensors.safetensors")


def events(model: Path, kind: str) -> list[dict[str, Any]]:
    lines = (model / "log.jsonl").read_text(encoding="utf-8").splitlines()
    return [event for event in map(json.loads, lines) if event["event"] == kind]


def farthest(one: dict[str, Tensor], other: dict[str, Tensor], part: str = "model.") -> float:
    """The largest difference of two checkpoints' tensors of one part."""
    assert one.keys() == other.keys()
    return max((one[name] - other[name]).abs().max().item() for name in one if name.startswith(part))
