"""The log of a run: every event as a line of JSON, over all continuations."""

from __future__ import annotations

import json
import time
from dataclasses import asdict
from pathlib import Path
from types import TracebackType
from typing import Any

from transduce.training.events import Event

__all__ = ["EventLog", "read_log"]

TAIL = 1 << 17
"""Bytes at a log's end in which its last step is looked for: a validation with its samples takes a few hundred."""


class EventLog:
    """Writes events as they come; each is on its way to the disk before the next."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __enter__(self) -> EventLog:
        self.reached = _last_step(self.path)
        """The step that the run had come to when it was left."""
        self._file = self.path.open("a+b")
        self._end_half_line()
        return self

    def write(self, event: Event) -> None:
        """Add a line."""
        entry = {"event": type(event).__name__, "time": round(time.time(), 3)} | asdict(event)
        self._file.write((json.dumps(entry, ensure_ascii=False) + "\n").encode())
        self._file.flush()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()

    def _end_half_line(self) -> None:
        """A kill or a full disk may have left half a line; what comes now must not be joined to it."""
        if self._file.tell():
            self._file.seek(-1, 2)
            if self._file.read(1) != b"\n":
                self._file.write(b"\n")


def _last_step(path: Path) -> int:
    """The step of the last step that a log tells of."""
    if not path.is_file():
        return 0
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - TAIL))
        lines = file.read().splitlines()
    for line in reversed(lines):
        try:
            event = json.loads(line)
            if event["event"] == "Stepped":
                return int(event["step"])
        except (ValueError, KeyError, TypeError):  # half a line
            continue
    return 0


def read_log(path: Path) -> list[dict[str, Any]]:
    """The events that lead to where the run is, in order.

    A run that was killed repeats the steps since its last checkpoint; what it had reported of them before is left out.
    """
    events: list[dict[str, Any]] = []
    for line in path.read_bytes().splitlines():
        try:
            event = json.loads(line)
            step, kind = event["step"], event["event"]
        except (ValueError, KeyError, TypeError):  # half a line
            continue
        if kind in ("Started", "Resumed"):
            while events and events[-1]["step"] > step:
                events.pop()
        events.append(event)
    return events
