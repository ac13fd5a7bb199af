"""Texts IN CAPITALS: few corpora hold any, so a model reads them in small letters and answers in capitals."""

from __future__ import annotations

from collections.abc import Iterable

from transduce.text.tokenizer import Tokenizer

__all__ = ["in_capitals", "in_small_letters", "is_better_small"]

FEWEST_LETTERS = 4
"""Of a text; shorter ones are mostly abbreviations."""
SHORTER = 0.75
"""A vocabulary that needs at most this share of the pieces for small letters has learned from small letters."""


def is_better_small(text: str, vocabulary: Tokenizer) -> bool:
    """Whether a text is all capitals, and the vocabulary one of small letters."""
    if not text.isupper() or sum(map(str.isalpha, text)) < FEWEST_LETTERS:
        return False
    return len(vocabulary.encode(in_small_letters(text))) <= SHORTER * len(vocabulary.encode(text))


def in_small_letters(text: str) -> str:
    """A text in small letters but for its first one; as many characters as before."""
    first = next((place for place, letter in enumerate(text) if letter.isalpha()), 0)
    small = (low if len(low := letter.lower()) == 1 else letter for letter in text[first + 1 :])
    return text[: first + 1] + "".join(small)


def in_capitals(text: str, kept: Iterable[str]) -> str:
    """A text in capitals, but for what is kept as it is."""
    written = text.upper()
    for part in kept:
        written = written.replace(part.upper(), part)
    return written
