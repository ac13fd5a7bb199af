"""Output that is a tree: which ids open and close a bracket, and which stand for the words of each sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from transduce.errors import ConfigError, InputError

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
    leaves: tuple[int, ...]
    """Ids that stand for a word. Since it is known which comes next, that one gets what the model gives to any."""
    words: tuple[tuple[int, ...], ...]
    """For each sentence the id of each of its words; all the same where only their number matters."""
    deepest: int = 100
    """Brackets that may be open at once."""

    def __post_init__(self) -> None:
        if not self.openings or not self.leaves or len(self.closings) != len(self.openings):
            raise ConfigError(
                f"brackets have {len(self.openings)} openings, {len(self.closings)} closings and {len(self.leaves)} "
                f"leaves.",
                remedy="Give one opening and one leaf or more, and a closing for each opening.",
            )
        meanings = (*self.openings, *set(self.closings), *self.leaves)
        if len(set(meanings)) < len(meanings):
            raise ConfigError("an id of the brackets has two meanings.", remedy="Give each id one.")
        if strange := {token for words in self.words for token in words} - set(self.leaves):
            raise ConfigError(f"id {min(strange)} stands for a word but is no leaf.", remedy="Add it to the leaves.")
        if not all(self.words):
            raise ConfigError("a sentence without words has no brackets.", remedy="Leave empty sentences out.")
        if self.deepest < 1:
            raise ConfigError(f"brackets with deepest={self.deepest} cannot work.", remedy="It must be 1 or more.")

    @property
    def ids(self) -> set[int]:
        """All that is written between the start and the end of a tree."""
        return {*self.openings, *self.closings, *self.leaves}

    def check_count(self, sentences: int) -> None:
        """Refuse words of more or fewer sentences than there are."""
        if len(self.words) != sentences:
            raise InputError(
                f"brackets have the words of {len(self.words)} sentences for {sentences}.",
                remedy="Give those of each sentence.",
            )

    def of(self, sentences: Sequence[int]) -> Brackets:
        """Those of some of the sentences."""
        return replace(self, words=tuple(self.words[index] for index in sentences))

    @staticmethod
    def least_tokens(words: Sequence[int]) -> int:
        """Of the smallest tree over these words: one bracket around them, and the end of sentence."""
        return len(words) + 3
