"""One spelling for one text: what every text goes through before it becomes tokens, in training and in use."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from dataclasses import dataclass

from transduce.text.letters import letters_of, meant_letters

__all__ = ["NORMALISATION", "Normalisation", "normalise"]

NORMALISATION = "nfc-1"
"""The name of these rules, recorded in every model: a model is used with the rules that it was trained with."""

SPACE_MARK = "▁"
"""SentencePiece writes spaces as this character; a text that holds it would come back with a space in its place."""
NAME = re.compile(rf"{NORMALISATION}(?:\+source:(?P<source>\w+))?(?:\+target:(?P<target>\w+))?")


@dataclass(frozen=True)
class Normalisation:
    """The rules of a model's two sides: those of all texts, and letters that other signs are taken for on a side."""

    source: str = ""
    target: str = ""
    """Such as "ɔɛ" where Twi is written; see `transduce.text.letters`."""

    @classmethod
    def of(cls, sources: Iterable[str | None], targets: Iterable[str | None]) -> Normalisation:
        """The rules for texts in these languages: a side has the letters that all of its languages write."""
        return cls(letters_of(sources), letters_of(targets))

    @classmethod
    def parse(cls, name: object) -> Normalisation | None:
        """The rules of a name that a model records, such as "nfc-1+target:ɔɛ"; None if it is not known here."""
        found = NAME.fullmatch(name) if isinstance(name, str) else None
        return cls(**found.groupdict(default="")) if found else None

    @property
    def name(self) -> str:
        """What a model records."""
        sides = [
            f"+{side}:{letters}" for side, letters in (("source", self.source), ("target", self.target)) if letters
        ]
        return NORMALISATION + "".join(sides)


def normalise(text: str, letters: str = "") -> str:
    """Unicode NFC, control characters and all kinds of white space as single spaces, none at the ends.

    Idempotent. Letters are never changed but for composition (e + ◌́ becomes é), and for signs that look like one of
    the `letters` and are taken for it, as a Greek epsilon for the ɛ of Twi.
    """
    composed = unicodedata.normalize("NFC", text.replace(SPACE_MARK, "_"))
    if letters:
        composed = meant_letters(composed, letters)
    if not composed.isprintable():  # true of spaces and letters, false of control characters and odd spaces
        composed = "".join(" " if _is_blank(character) else character for character in composed)
    return " ".join(composed.split())


def _is_blank(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Zl", "Zp", "Zs") or character == "\ufeff"
