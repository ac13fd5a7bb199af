"""How an experiment looks while it runs: bars on a terminal, a line a run elsewhere."""

from __future__ import annotations

import time
from collections.abc import Mapping
from datetime import timedelta

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, TaskID, TextColumn

from experiment.progress import RunProgress

__all__ = ["Display"]


class Display:
    """Draws what the runner sees."""

    def __init__(self) -> None:
        self.console = Console(soft_wrap=True, highlight=False)
        self._bars: Progress | None = None
        self._tasks: dict[str, TaskID] = {}
        self._all, self._done, self._first = 0, 0, 0.0
        self._started: float | None = None
        self._left = ""

    def begin(self, runs: int, complete: int) -> None:
        """There are so many runs, of which some were complete before."""
        self._all, self._done = runs, complete
        known = f", {complete} of them complete" if complete else ""
        self.say(f"{runs} runs{known}")
        if self.console.is_terminal and complete < runs:
            columns = (TextColumn("{task.description}"), BarColumn(bar_width=24), TextColumn("{task.fields[words]}"))
            self._bars = Progress(*columns, console=self.console, transient=True)
            self._bars.start()

    def show(self, under_way: Mapping[str, RunProgress], waiting: int, jobs: int) -> None:
        """What is under way now."""
        done = self._done + sum(each.share for each in under_way.values())
        now = time.monotonic()
        if self._started is None:
            self._started, self._first = now, done  # a run that goes on did not begin now
        if done - self._first > 0.01:
            # What is left in the end may keep fewer processes busy than there have been so far.
            left = self._all - done
            longest = max([0.0] + [1.0] * bool(waiting) + [1 - each.share for each in under_way.values()])
            seconds = (now - self._started) / (done - self._first) * max(left, longest * min(jobs, len(under_way) or 1))
            self._left = f"about {timedelta(seconds=round(seconds))} left"
        if self._bars is None:
            return
        rows = {f"all {self._all} runs": (done, self._all, self._left)}
        rows |= {name: (each.share, 1.0, each.words) for name, each in under_way.items()}
        for name in [name for name in self._tasks if name not in rows]:
            self._bars.remove_task(self._tasks.pop(name))
        for name, (completed, total, words) in rows.items():
            if name not in self._tasks:
                self._tasks[name] = self._bars.add_task(escape(name), total=total, words="")
            self._bars.update(self._tasks[name], completed=completed, words=escape(words))

    def finished(self, text: str) -> None:
        """A run has ended."""
        self._done += 1
        left = f"; {self._left}" if self._left and self._done < self._all else ""
        self.say(f"{self._done}/{self._all} {text}{left}")

    def say(self, text: str) -> None:
        """A line that stays."""
        clock = "" if self.console.is_terminal else time.strftime("%H:%M:%S ")
        self.console.print(escape(clock + text))

    def end(self) -> None:
        """Nothing is under way any more."""
        if self._bars is not None:
            self._bars.stop()
            self._bars = None
