"""A bar under work that takes a while: on a terminal only, and only once it has taken a while."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TYPE_CHECKING, Any

from transduce.errors import TransduceError

if TYPE_CHECKING:
    from rich.progress import Progress

__all__ = ["LineProgress"]

PATIENCE = 2.0
"""Seconds without a bar: most work is done by then."""


class LineProgress:
    """How many lines are done, and when all will be; drawn on stderr, and never between two lines of output.

    `count` gives the number of all lines, if it can be known; it is asked for only when there is a bar.
    """

    def __init__(self, count: Callable[[], int] | None) -> None:
        self._count, self._done, self._over = count, 0, False
        self._before = 0
        self._total: int | None = None
        self._started = time.monotonic()
        self._bar: Progress | None = None
        self._lock = threading.RLock()
        self._timer = threading.Timer(PATIENCE, self._show)
        self._timer.daemon = True

    def __enter__(self) -> LineProgress:
        if sys.stderr.isatty():
            self._timer.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._timer.cancel()
        with self._lock:
            self._over = True  # also for a timer that has just gone off
            if self._bar is not None:
                self._bar.stop()

    @contextmanager
    def aside(self) -> Iterator[None]:
        """The screen without the bar, to write lines to."""
        with self._lock:
            hidden = self._bar if sys.stdout.isatty() else None
            if hidden is not None:
                hidden.stop()
            yield
            if hidden is not None:
                hidden.start()

    def advance(self, lines: int) -> None:
        """So many more lines are done."""
        with self._lock:
            self._done += lines
            if self._bar is not None:
                self._bar.update(self._bar.task_ids[0], **self._shown())

    def reach(self, done: int, total: int) -> None:
        """So many of all lines are done; the first time, before this began."""
        with self._lock:
            if self._total is None:
                self._total, self._before, self._started = total, done, time.monotonic()
            self.advance(done - self._done)

    def _show(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, Progress, SpinnerColumn, TextColumn

        console = Console(stderr=True)
        if console.is_dumb_terminal:
            return
        try:
            total = self._count() if self._count else None
        except TransduceError:  # what is wrong with the file is said by whoever reads it
            total = None
        with self._lock:
            self._total = self._total or total
            if self._over:
                return
            self._bar = Progress(
                SpinnerColumn(),
                TextColumn("{task.completed:,}{task.fields[of_all]} lines"),
                BarColumn(bar_width=24),
                TextColumn("{task.fields[left]}"),
                console=console,
                transient=True,
                redirect_stdout=False,  # lines are output: they must not become part of what is drawn
                redirect_stderr=False,
            )
            self._bar.add_task("", **self._shown())
            self._bar.start()

    def _shown(self) -> dict[str, Any]:
        of_all = f" of {self._total:,}" if self._total else ""
        return {"total": self._total, "completed": self._done, "of_all": of_all, "left": self._left()}

    def _left(self) -> str:
        done = self._done - self._before
        if not self._total or not done:
            return ""
        seconds = (time.monotonic() - self._started) * (self._total - self._done) / done
        return f"{timedelta(seconds=max(0, int(seconds)))} left"
