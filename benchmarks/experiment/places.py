"""Where things are in the directory of an experiment, and one process at a time for each run.

results.jsonl            a line a run
report.md, report.html   the tables; the curves
runs/NAME/               the run, as `transduce train` leaves it
translations/            what each run makes of dev and test
notes/NAME.log           what its process has printed
notes/NAME.seconds       CPU time of training, over all its processes
notes/NAME.json          its result, once it is measured
corpus/                  the part of a corpus that is trained on
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiment.grid import Grid, Run

__all__ = ["Places", "Result"]

Result = dict[str, Any]


@dataclass(frozen=True)
class Places:
    """The directory of an experiment."""

    directory: Path

    def make(self) -> None:
        """Make what is missing of it."""
        for name in ("runs", "translations", "notes"):
            (self.directory / name).mkdir(parents=True, exist_ok=True)

    def model(self, run: Run) -> Path:
        """The directory of a run."""
        return self.directory / "runs" / run.name

    def events(self, run: Run) -> Path:
        """The log that `transduce train` writes."""
        return self.model(run) / "log.jsonl"

    def note(self, run: Run, ending: str) -> Path:
        """What the experiment itself keeps of a run."""
        return self.directory / "notes" / f"{run.name}.{ending}"

    def translations(self, run: Run, split: str) -> Path:
        """What a run has made of dev or test."""
        return self.directory / "translations" / f"{run.name}.{split}.txt"

    def result(self, run: Run) -> Result | None:
        """Of a run that was trained and measured as the grid says now."""
        try:
            result: Result = json.loads(self.note(run, "json").read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return result if result["fingerprint"] == run.fingerprint else None

    def results(self, grid: Grid) -> dict[tuple[str, int], Result]:
        """Of all complete runs, by variant and seed."""
        found = ((run, self.result(run)) for run in grid.runs())
        return {(run.variant, run.seed): result for run, result in found if result is not None}

    def keep(self, results: Iterable[Result]) -> None:
        """Add those to results.jsonl that it does not have yet."""
        path = self.directory / "results.jsonl"
        have = set(path.read_text(encoding="utf-8").splitlines()) if path.is_file() else set()
        with path.open("a", encoding="utf-8") as file:
            for result in results:
                if (line := json.dumps(result, ensure_ascii=False)) not in have:
                    file.write(line + "\n")

    @contextmanager
    def only_one(self, run: Run) -> Iterator[None]:
        """Waits until no other process is at the run: one whose runner was killed may still be saving."""
        with self.note(run, "lock").open("w") as file:
            if sys.platform == "win32":
                import msvcrt

                msvcrt.locking(file.fileno(), msvcrt.LK_LOCK, 1)
            else:
                import fcntl

                fcntl.flock(file, fcntl.LOCK_EX)
            yield
