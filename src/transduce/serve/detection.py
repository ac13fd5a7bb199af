"""Which language a text is in."""

from __future__ import annotations

from collections.abc import Iterable
from functools import cache
from typing import Any, NamedTuple

from transduce.text.letters import letters_of

__all__ = ["Guess", "detect", "detect_among"]

LIKELY = 1.0
"""Per cent below which a language is not worth telling."""
UNLIKE = 0.05
"""Share below which a text is more likely in a language that the detector does not know: so, of everyday sentences in
English, German and Twi, 99.5 % and more are told right."""


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
    """The likeliest of some languages; the first of them where nothing speaks for one.

    Where languages that the detector has not learned (such as Twi) are among them, letters that only they write speak
    for them, and so does a text that is hardly like any of the others.
    """
    choices = list(languages)
    shares = dict(_identifier().rank(text)) if any(character.isalpha() for character in text) else {}
    best = max(choices, key=lambda language: shares.get(language, 0.0))
    unknown = [language for language in choices if shares and language not in shares]
    written = [language for language in unknown if set(letters_of([language])) & set(text.lower())]
    if written or (unknown and shares.get(best, 0.0) < UNLIKE):
        rest = 1 - sum(shares.get(language, 0.0) for language in choices)
        return Guess((written or unknown)[0], round(100 * max(0.0, rest), 1))
    return Guess(best, round(100 * shares.get(best, 0.0), 1))


@cache
def _identifier() -> Any:
    from py3langid.langid import MODEL_FILE, LanguageIdentifier

    return LanguageIdentifier.from_model_file(MODEL_FILE, norm_probs=True)
