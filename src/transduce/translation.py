"""What a translation is: a text, how good the model holds it to be, and what there is to say about it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from transduce.confidence import mean_confidence

__all__ = ["Alternative", "Flag", "Translation", "joined"]


@dataclass(frozen=True)
class Flag:
    """Something about a translation that its reader should know."""

    code: str
    """For programs: `repetition`, `length`, `untranslated`, `pieces`, `lost` or `glossary`."""
    message: str
    """For people."""


@dataclass(frozen=True)
class Alternative:
    """One way to translate a text."""

    text: str
    score: float
    """Log-probability over length penalty; sums over sentences where the text has several."""
    confidence: float | None = None
    """From 0 to 1, such as 0.7: sentences like this came out 70 % like a human's translation (chrF). Of several
    sentences the mean by length; 0 for what had to be mended. None if the model was not calibrated, if words were drawn
    at random or tried by a shortlist only."""


@dataclass(frozen=True)
class Translation:
    """A text's translation."""

    text: str
    score: float
    alternatives: list[Alternative] = field(default_factory=list)
    """The n best, the translation itself first; fewer where some of them were no good."""
    confidence: float | None = None
    """See Alternative."""
    warnings: list[Flag] = field(default_factory=list)
    """What could not be made good; empty for nearly every text."""
    redone: int = 0
    """How many sentences were decoded again because what came first was no good."""


def joined(parts: Sequence[Sequence[Alternative]], join: Callable[[list[str]], str]) -> list[Alternative]:
    """The ways to translate a text of several parts: the best of each together, then the second best, and so on.

    A part that has fewer ways than others comes with its last one.
    """
    ways = []
    for rank in range(max(map(len, parts), default=1)):
        chosen = [part[min(rank, len(part) - 1)] for part in parts]
        confidence = mean_confidence([(each.confidence, len(each.text)) for each in chosen])
        score = sum((each.score for each in chosen), 0.0)
        ways.append(Alternative(join([each.text for each in chosen]), score, confidence))
    return ways
