"""The command line, in processes that are told how to end."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[2]


class Lives:
    """`transduce train`; each life trains in a directory until it ends by itself, or as it is told (see lives.py)."""

    def __init__(self, arguments: list[str], threads: int) -> None:
        self.arguments = arguments
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.lives"], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
            text=True, env=os.environ | {"OMP_NUM_THREADS": str(threads)},
        )  # fmt: skip

    def train(self, model: Path, steps: int, moment: dict[str, Any] | None = None, **more: Any) -> tuple[int, str]:
        """How such a life ends, and what it says."""
        arguments = ["train", "-o", str(model), "--recipe", "small-corpus", "--steps", str(steps), *self.arguments]
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps({"arguments": arguments, "moment": moment} | more) + "\n")
        self.process.stdin.flush()
        code, said = json.loads(self.process.stdout.readline())
        return code, said

    def told(self, model: Path, steps: int, number: int, lines: int, pause: float = 0.0) -> tuple[int, str]:
        """How a life ends that is sent a signal a while after its log has grown by so many lines."""
        told = {"number": number, "log": str(model / "log.jsonl"), "lines": lines, "pause": pause}
        return self.train(model, steps, told=told)

    def finish(self, model: Path, steps: int) -> str:
        """Train to the end."""
        code, said = self.train(model, steps)
        assert code == 0, said
        return said


@contextmanager
def opened(arguments: list[str], threads: int) -> Iterator[Lives]:
    """Lives with these arguments, which end with the block."""
    lives = Lives(arguments, threads)
    with lives.process:
        yield lives
        assert lives.process.stdin is not None
        lives.process.stdin.close()
