"""The example files as a cluster takes them: what they start is caught by programs that say how they were called."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer

from transduce.cli.main import app

DEPLOY = Path(__file__).parents[2] / "deploy"
CAUGHT = 'printf "%s\\0" "$@" > "$(dirname "$0")/$(basename "$0").called"\n'


@dataclass
class Programs:
    """Programs that a script finds instead of those of a cluster."""

    folder: Path

    def add(self, name: str, lines: str = "") -> None:
        """One that notes its arguments, and then does something."""
        path = self.folder / name
        path.write_text(f"#!/bin/sh\n{CAUGHT}{lines}", encoding="utf-8")
        path.chmod(0o755)

    def called(self, name: str) -> list[str]:
        """How it was called."""
        return (self.folder / f"{name}.called").read_text(encoding="utf-8").split("\0")[:-1]

    def run(self, *command: str, **environment: str) -> subprocess.CompletedProcess[str]:
        path = f"{self.folder}{os.pathsep}{os.environ['PATH']}"
        return subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=60, env=environment | {"PATH": path}
        )


@pytest.fixture
def programs(tmp_path: Path) -> Programs:
    if sys.platform == "win32":
        pytest.skip("clusters do not run Windows")
    return Programs(tmp_path)


def options(command: str, words: list[str]) -> dict[str, Any]:
    """The options of one of our commands, as the command itself would read them."""
    commands: Any = typer.main.get_command(app)
    params: dict[str, Any] = commands.commands[command].make_context(command, list(words)).params
    return params


@pytest.fixture(scope="session")
def serve_options() -> Callable[[list[str]], dict[str, Any]]:
    return lambda words: options("serve", words)


@pytest.fixture(scope="session")
def launched() -> Callable[[list[str]], tuple[argparse.Namespace, dict[str, Any]]]:
    """What torchrun makes of a command line, and what `transduce train` makes of the rest."""
    from torch.distributed.run import get_args_parser

    def parsed(words: list[str]) -> tuple[argparse.Namespace, dict[str, Any]]:
        found = get_args_parser().parse_args(words)
        assert (found.module, found.training_script) == (True, "transduce")
        assert found.training_script_args[0] == "train"
        return found, options("train", found.training_script_args[1:])

    return parsed
