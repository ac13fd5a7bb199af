"""What a translation is: a text, how good the model holds it to be, and what there is to say about it."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = ["Alternative", "Flag", "Translation"]


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
