"""Which language a text is in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

__all__ = ["Guess", "detect", "detect_among"]

LIKELY = 1.0
"""Per cent below which a language is not worth telling."""


class Guess(NamedTuple):
    """A language, and how likely a text is in it, in per cent."""

    language: str
    confidence: float


def detect(text: str) -> list[Guess]:
    """The languages that a text may be in, likeliest first; none for a text without letters."""
    if not any(character.isalpha() for character in text):
        return []
    ranked = [Guess(language, round(100 * share, 1)) for language, share in _identifier().rank(text)]
    return [ranked[0], *(guess for guess in ranked[1:4] if guess.confidence >= LIKELY)]


def detect_among(text: str, languages: Iterable[str]) -> Guess:
    """The likeliest of some languages; the first of them where nothing speaks for one."""
    choices = list(languages)
    shares = dict(_identifier().rank(text)) if any(character.isalpha() for character in text) else {}
    best = max(choices, key=lambda language: shares.get(language, 0.0))
    return Guess(best, round(100 * shares.get(best, 0.0), 1))


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
