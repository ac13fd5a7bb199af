"""Figures for Prometheus, in its text format."""

from __future__ import annotations

import threading
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Callable, Sequence

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
SECONDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0)
SENTENCES = (1, 2, 4, 8, 16, 32, 64, 128)


class _Histogram:
    def __init__(self, bounds: Sequence[float]) -> None:
        self.bounds, self.counts, self.total = bounds, [0] * (len(bounds) + 1), 0.0

    def add(self, value: float) -> None:
        self.counts[bisect_left(self.bounds, value)] += 1
        self.total += value

    def lines(self, name: str) -> list[str]:
        lines, below = [], 0
        for bound, count in zip([*map(str, self.bounds), "+Inf"], self.counts, strict=True):
            below += count
            lines.append(f'{name}_bucket{{le="{bound}"}} {below}')
        return [*lines, f"{name}_sum {self.total:g}", f"{name}_count {below}"]


class Metrics:
    """What has been asked and done since the start. `waiting` tells how many sentences wait at the moment."""

    def __init__(self) -> None:
        self.waiting: Callable[[], int] = lambda: 0
        self._lock = threading.Lock()
        self._counters: dict[str, dict[str, int]] = {
            name: defaultdict(int) for name in ("requests", "refusals", "sentences", "characters", "redone", "warnings")
        }
        self._seconds, self._batches = _Histogram(SECONDS), _Histogram(SENTENCES)

    def request(self, route: str, status: int, seconds: float) -> None:
        """A request has been answered."""
        with self._lock:
            self._counters["requests"][f'route="{route}",status="{status}"'] += 1
            self._seconds.add(seconds)

    def refusal(self, reason: str) -> None:
        """A request was past a limit."""
        with self._lock:
            self._counters["refusals"][f'reason="{reason}"'] += 1

    def translated(self, model: str, sentences: int, characters: int) -> None:
        """So much has been translated."""
        label = _escaped(model)
        with self._lock:
            self._counters["sentences"][f'model="{label}"'] += sentences
            self._counters["characters"][f'model="{label}"'] += characters

    def guarded(self, model: str, redone: int, codes: Sequence[str]) -> None:
        """So many sentences of a text were decoded again, and its translation has these warnings."""
        if redone or codes:
            label = _escaped(model)
            with self._lock:
                self._counters["redone"][f'model="{label}"'] += redone
                for code in codes:
                    self._counters["warnings"][f'code="{code}",model="{label}"'] += 1

    def batch(self, sentences: int) -> None:
        """So many sentences are decoded together."""
        with self._lock:
            self._batches.add(sentences)

    def text(self) -> str:
        """All figures."""
        helps = {
            "requests": "Requests answered.",
            "refusals": "Requests past a limit.",
            "sentences": "Sentences translated.",
            "characters": "Characters translated.",
            "redone": "Sentences decoded again because what came first was no good.",
            "warnings": "Warnings of translations.",
        }
        lines: list[str] = []
        with self._lock:
            for name, values in self._counters.items():
                full = f"transduce_{name}_total"
                lines += [f"# HELP {full} {helps[name]}", f"# TYPE {full} counter"]
                lines += [f"{full}{{{labels}}} {value}" for labels, value in sorted(values.items())]
            for name, help_text, histogram in (
                ("transduce_request_seconds", "From a request to its answer.", self._seconds),
                ("transduce_batch_sentences", "Sentences decoded together.", self._batches),
            ):
                lines += [f"# HELP {name} {help_text}", f"# TYPE {name} histogram", *histogram.lines(name)]
        name = "transduce_waiting_sentences"
        lines += [f"# HELP {name} Sentences that wait.", f"# TYPE {name} gauge", f"{name} {self.waiting()}"]
        return "\n".join(lines) + "\n"


def _escaped(label: str) -> str:
    return label.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
