"""The examples in the guide do what it says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

GUIDE = Path(__file__).parents[2] / "docs" / "serving.md"
ADDRESS = "http://127.0.0.1:5000"


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(encoding="utf-8"), re.S | re.M)


CURLS = [
    (command.replace("\\\n", " "), answer)
    for block in blocks("sh")
    for command, answer in re.findall(r"^(curl (?:.*\\\n)*.*)\n# (.*)$", block, re.M)
]


@pytest.mark.parametrize(("command", "answer"), CURLS, ids=[command[26:60] for command, _ in CURLS])
def test_curl(service: Any, command: str, answer: str) -> None:
    words = shlex.split(command.replace(ADDRESS, service.url))
    done = subprocess.run([*words, "--silent", "--fail"], capture_output=True, encoding="utf-8", check=True)
    expected, cut, _ = answer.partition("...")
    assert done.stdout.startswith(expected) if cut else done.stdout == expected


def test_there_are_examples() -> None:
    assert len(CURLS) == 8
    assert sum(block.count("curl ") for block in blocks("sh")) == 8


def test_python(service: Any) -> None:
    (code,) = blocks("python")
    done = subprocess.run(
        [sys.executable, "-c", code.replace(ADDRESS, service.url)], capture_output=True, encoding="utf-8", check=True
    )
    assert done.stdout.splitlines() == re.findall(r"^# (.*)$", code, re.M)
