"""A number over seeds: its mean, how far it spreads, and whether two of them differ."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import mean, stdev

__all__ = ["Scores", "standard_error"]


@dataclass(frozen=True)
class Scores:
    """A number over seeds."""

    values: Sequence[float]

    @property
    def mean(self) -> float:
        """Of all seeds."""
        return mean(self.values)

    @property
    def spread(self) -> float:
        """Standard deviation between seeds; 0 of a single one."""
        return stdev(self.values) if len(self.values) > 1 else 0.0

    def __str__(self) -> str:
        return f"{self.mean:.2f}" + (f" ± {self.spread:.2f}" if len(self.values) > 1 else "")


def standard_error(one: Scores, other: Scores) -> float:
    """Of the difference between two means; 0 says nothing where there is a single seed."""
    return math.sqrt(sum(scores.spread**2 / len(scores.values) for scores in (one, other)))
