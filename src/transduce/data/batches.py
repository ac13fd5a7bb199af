"""Batches by token budget: shuffled, sorted by length within a window, cut, shuffled again.

The plan of an epoch depends on its seed and number only, so that a run can be continued anywhere in it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from transduce.data.shards import Pairs
from transduce.errors import ConfigError

__all__ = ["BatchPlan", "Indices", "padded"]

Indices = npt.NDArray[np.integer[Any]]


@dataclass(frozen=True)
class BatchPlan:
    """Which pairs go together.

    A batch holds at most `max_tokens` tokens on each side, padding included (a longer single pair is a batch alone);
    each pair counts `extra` tokens more.
    """

    pairs: Pairs
    max_tokens: int
    seed: int = 1
    window: int = 100
    """Batches that are sorted together: more means less padding, and lengths that come less at random."""
    shuffle: bool = True
    extra: int = 0
    """Room for each pair besides its tokens, such as for what may be written in answer."""

    def __post_init__(self) -> None:
        for name, smallest in (("max_tokens", 1), ("window", 1), ("seed", 0)):
            if getattr(self, name) < smallest:
                raise ConfigError(
                    f"{name}={getattr(self, name)} cannot work.", remedy=f"It must be {smallest} or more."
                )

    def epoch(self, number: int) -> Iterator[Indices]:
        """The batches of an epoch, each an array of pair indices.

        A pair comes as often as its corpus weighs: with weight 3 three times, with 0.5 every other epoch or so. Without
        shuffling every pair comes once.
        """
        generator = np.random.default_rng((self.seed, number))
        for window in self._windows(self._order(generator)):
            batches = list(self._cut(window))
            if self.shuffle:
                generator.shuffle(batches)
            yield from batches

    def _order(self, generator: np.random.Generator) -> Indices:
        """Every index as often as the epoch sees it: all that grows with the corpus in memory, four bytes a pair."""
        kind = np.uint32 if len(self.pairs) <= 2**32 else np.uint64
        if not self.shuffle or not len(self.pairs):
            return np.arange(len(self.pairs), dtype=kind)
        parts: list[Indices] = []
        for span in self.pairs.spans:
            indices = np.arange(span.start, span.end, dtype=kind)
            whole, more = span.times()
            parts += [indices] * whole
            if more:
                parts.append(generator.permutation(indices)[:more])
        order = parts[0] if len(parts) == 1 else np.concatenate(parts)
        generator.shuffle(order)
        return order

    def _windows(self, order: Indices) -> Iterator[Indices]:
        """Slices of about `window` batches."""
        mean = max(1.0, max(self.pairs.tokens.values()) / max(1, len(self.pairs)))
        size = max(1, int(self.window * self.max_tokens / mean))
        for start in range(0, len(order), size):
            yield order[start : start + size]

    def _cut(self, window: Indices) -> Iterator[Indices]:
        source, target = (self.pairs.lengths(side, window) for side in ("source", "target"))
        longest = np.maximum(source, target)
        by_length = np.lexsort((source, target, longest))
        start, widest = 0, 0
        for position, index in enumerate(by_length):
            widest = max(widest, int(longest[index]) + self.extra)
            if position > start and widest * (position - start + 1) > self.max_tokens:
                yield window[by_length[start:position]]
                start, widest = position, int(longest[index]) + self.extra
        if start < len(by_length):
            yield window[by_length[start:]]


def padded(sequences: list[npt.NDArray[np.uint32]], pad_id: int) -> Indices:
    """[B, longest], padding at the end."""
    batch = np.full((len(sequences), max(map(len, sequences))), pad_id, dtype=np.int64)
    for row, sequence in zip(batch, sequences, strict=True):
        row[: len(sequence)] = sequence
    return batch
