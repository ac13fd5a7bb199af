"""What every engine does: ids in, hypotheses out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from transduce.decoding import DecodingOptions, Hypothesis

__all__ = ["Engine"]


class Engine(Protocol):
    """A model that can be run."""

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        """For each source (ids without end of sentence) its hypotheses, best first."""
