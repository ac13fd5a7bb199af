"""Output that is a tree: which ids open and close a bracket, and which stand for the words of each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from transduce.errors import ConfigError

__all__ = ["Brackets"]


@dataclass(frozen=True, kw_only=True)
class Brackets:
    """Every hypothesis is one bracket with others in it, none of them empty, over the words of its sentence, in order.

    Whatever the model would rather write: brackets are closed in time for the length limit.
    """

    openings: tuple[int, ...]
    """Ids that open a bracket."""
    closings: tuple[int, ...]
    """The id that closes the n-th of them; several may share one."""
    words: tuple[tuple[int, ...], ...]
    """For each sentence the id of each of its words; all the same where only their number matters."""
    deepest: int = 100
    """Brackets that may be open at once."""

    def __post_init__(self) -> None:
        if not self.openings or len(self.closings) != len(self.openings):
            raise ConfigError(
                f"brackets have {len(self.openings)} openings and {len(self.closings)} closings.",
                remedy="Give one or more, and a closing for each opening.",
            )
        meanings = (*self.openings, *set(self.closings), *self.leaves)
        if len(set(meanings)) < len(meanings):
            raise ConfigError("an id of the brackets has two meanings.", remedy="Give each id one.")
        if not all(self.words):
            raise ConfigError("a sentence without words has no brackets.", remedy="Leave empty sentences out.")
        if self.deepest < 1:
            raise ConfigError(f"brackets with deepest={self.deepest} cannot work.", remedy="It must be 1 or more.")

    @cached_property
    def leaves(self) -> frozenset[int]:
        """The ids that stand for words."""
        return frozenset(token for words in self.words for token in words)

    @property
    def ids(self) -> set[int]:
        """All that is written between the start and the end of a tree."""
        return {*self.openings, *self.closings, *self.leaves}

    def of(self, sentences: Sequence[int]) -> Brackets:
        """Those of some of the sentences."""
        return replace(self, words=tuple(self.words[index] for index in sentences))

    @staticmethod
    def least_tokens(words: Sequence[int]) -> int:
        """Of the smallest tree over these words: one bracket around them, and the end of sentence."""
        return len(words) + 3
