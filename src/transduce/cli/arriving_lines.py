"""Lines in blocks: of a file as many as are wanted, of standard input as many as have arrived."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable
from itertools import islice
from typing import IO, Protocol

__all__ = ["ArrivingLines", "Lines", "PresentLines"]

LINES_AHEAD = 4096
"""Lines that are read before they are wanted: without a limit, a large input would be read into memory whole."""


class Lines(Protocol):
    """Lines to take."""

    def take(self, most: int, wait: bool) -> list[str]:
        """The next lines, so many at most; none at the end, and without `wait` also if there is none yet."""


class PresentLines:
    """Lines that are all there."""

    def __init__(self, lines: Iterable[str]) -> None:
        self._lines = iter(lines)

    def take(self, most: int, wait: bool) -> list[str]:
        """The next lines, so many if there are."""
        return list(islice(self._lines, most))


class ArrivingLines:
    """Lines of someone who may be typing, or of a program that waits for each answer: nobody waits for a full block."""

    def __init__(self, file: IO[str]) -> None:
        self._arrived: queue.Queue[str | BaseException | None] = queue.Queue(LINES_AHEAD)
        self._over = False
        threading.Thread(target=self._read, args=(file,), daemon=True).start()

    def take(self, most: int, wait: bool) -> list[str]:
        """What has arrived; with `wait`, at least a line unless there is none any more."""
        lines: list[str] = []
        while len(lines) < most and not self._over:
            try:
                line = self._arrived.get(block=wait and not lines)
            except queue.Empty:
                break
            if isinstance(line, BaseException):
                raise line
            self._over = line is None
            lines += [line] if line is not None else []
        return lines

    def _read(self, file: IO[str]) -> None:
        try:
            for line in file:
                self._arrived.put(line.rstrip("\r\n"))
            self._arrived.put(None)
        except Exception as error:  # such as text that is not UTF-8: raised where the lines are taken
            self._arrived.put(error)
