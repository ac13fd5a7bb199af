"""Output that is a tree: which ids open and close a bracket, and how many words each tree has."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transduce.errors import ConfigError

__all__ = ["Brackets"]


@dataclass(frozen=True, kw_only=True)
class Brackets:
    """Every hypothesis is one bracket with others in it, none of them empty, over as many words as its sentence has.

    Whatever the model would rather write: brackets are closed in time for the length limit.
    """

    openings: tuple[int, ...]
    """Ids that open a bracket."""
    closings: tuple[int, ...]
    """The id that closes the n-th of them; several may share one."""
    leaves: tuple[int, ...]
    """Ids that stand for a word."""
    words: tuple[int, ...]
    """How many words each sentence has."""
    deepest: int = 100
    """Brackets that may be open at once."""

    def __post_init__(self) -> None:
        for name in ("openings", "closings", "leaves", "words"):
            object.__setattr__(self, name, tuple(getattr(self, name)))
        if not self.openings or not self.leaves or len(self.closings) != len(self.openings):
            raise ConfigError(
                f"brackets have {len(self.openings)} openings, {len(self.closings)} closings and {len(self.leaves)} "
                "leaves.",
                remedy="Give an opening and a leaf or more, and a closing for each opening.",
            )
        ids = (*self.openings, *set(self.closings), *self.leaves)
        if len(set(ids)) < len(ids):
            raise ConfigError("an id of the brackets has two meanings.", remedy="Give each id once.")
        for name, least in (("words", min(self.words, default=1)), ("deepest", self.deepest)):
            if least < 1:
                raise ConfigError(f"brackets with {name}={least} cannot work.", remedy="It must be 1 or more.")

    @property
    def ids(self) -> set[int]:
        """All that is written between the start and the end of a tree."""
        return {*self.openings, *self.closings, *self.leaves}

    def of(self, sentences: Sequence[int]) -> Brackets:
        """Those of some of the sentences."""
        return replace(self, words=tuple(self.words[index] for index in sentences))

    @staticmethod
    def least_tokens(words: int) -> int:
        """Of the smallest tree with so many words: a bracket around them, and the end of sentence."""
        return words + 3
