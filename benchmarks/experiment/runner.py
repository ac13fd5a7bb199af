"""All runs of an experiment, some at once; what is complete is not run again, and what was begun goes on."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from types import FrameType

from experiment.display import Display
from experiment.grid import Run
from experiment.places import Places
from experiment.progress import progress_of
from transduce.processes import cores

__all__ = ["Runner"]

LOOK = 0.25
"""Seconds between two looks at the processes."""


@dataclass
class Runner:
    """Keeps processes going."""

    places: Places
    jobs: int
    command: Callable[[Run], Sequence[str]]
    """That carries out a run in a process of its own, and stops it when its standard input is closed."""
    display: Display
    active: dict[Run, subprocess.Popen[bytes]] = field(default_factory=dict)
    stopping: bool = False
    failed: list[Run] = field(default_factory=list)

    def run_all(self, runs: Sequence[Run]) -> None:
        """Until every run is complete or has failed, or someone asks to stop; then all have saved what they have."""
        waiting = [run for run in runs if self.places.result(run) is None]
        for run in (run for run in runs if run not in waiting):
            self._note(run)  # its runner may have been killed before it did
        self.display.begin(len(runs), len(runs) - len(waiting))
        before = {number: signal.signal(number, self._stop) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            while self.active or (waiting and not self.stopping):
                while waiting and not self.stopping and len(self.active) < self.jobs:
                    self._start(waiting.pop(0))
                time.sleep(LOOK)
                self._look(len(waiting))
        finally:
            for process in self.active.values():
                _ask_to_stop(process)
            for number, handler in before.items():
                signal.signal(number, handler)
            self.display.end()

    def _start(self, run: Run) -> None:
        self.display.say(f"{run.name}: {'goes on' if self.places.events(run).is_file() else 'begins'}")
        environment = os.environ | {"OMP_NUM_THREADS": str(_threads(self.jobs)), "PYTHONUTF8": "1"}
        with self.places.note(run, "log").open("ab") as log:
            # A group of its own: Ctrl-C is for the runner, which asks the others in its own way.
            apart = (
                {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
                if sys.platform == "win32"
                else {"start_new_session": True}
            )
            self.active[run] = subprocess.Popen(
                self.command(run), stdin=subprocess.PIPE, stdout=log, stderr=subprocess.STDOUT, env=environment, **apart
            )

    def _look(self, waiting: int) -> None:
        for run, process in list(self.active.items()):
            if process.poll() is not None:
                del self.active[run]
                _ask_to_stop(process)
                self._finish(run, process.returncode)
        under_way = {run.name: progress_of(self.places.events(run), run.recipe.budget) for run in self.active}
        self.display.show(under_way, waiting, self.jobs)

    def _finish(self, run: Run, code: int) -> None:
        result = self.places.result(run) if code == 0 else None
        if result is not None:
            self._note(run)
            scores = ", ".join(
                f"{split} BLEU {result[split]['bleu']:.2f}" for split in ("dev", "test") if split in result
            )
            spent = f"{result['steps']:,} steps, {result['minutes']:.1f} min, {result['cpu_minutes']:.1f} of CPU time"
            self.display.finished(f"{run.name}: {scores} ({spent})")
        elif self.stopping:
            self.display.say(f"{run.name}: stopped, saved")
        else:
            self.failed.append(run)
            log = self.places.note(run, "log")
            lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
            self.display.finished(f"{run.name} failed: {lines[-1] if lines else ''} ({log})")

    def _note(self, run: Run) -> None:
        result = self.places.result(run)
        if result is not None:
            self.places.keep([result])

    def _stop(self, number: int, frame: FrameType | None) -> None:
        if self.stopping:  # the second time in earnest
            raise KeyboardInterrupt
        self.stopping = True
        self.display.say("Stopping; the same command goes on.")
        for process in self.active.values():
            _ask_to_stop(process)


def _threads(jobs: int) -> int:
    """Of each run: its share of the cores, or fewer if that is the wish of whoever has set the usual variable."""
    wished = os.environ.get("OMP_NUM_THREADS", "")
    share = max(1, cores() // jobs)
    return min(share, int(wished)) if wished.isdecimal() and int(wished) else share


def _ask_to_stop(process: subprocess.Popen[bytes]) -> None:
    if process.stdin is not None and not process.stdin.closed:
        process.stdin.close()
