"""One spelling for one text: what every text goes through before it becomes tokens, in training and in use."""

from __future__ import annotations

import unicodedata

__all__ = ["NORMALISATION", "normalise"]

NORMALISATION = "nfc-1"
"""The name of these rules, recorded in every model: a model is used with the rules that it was trained with."""

SPACE_MARK = "▁"
"""SentencePiece writes spaces as this character; a text that holds it would come back with a space in its place."""


def normalise(text: str) -> str:
    """Unicode NFC, control characters and all kinds of white space as single spaces, none at the ends.

    Idempotent. Letters are never changed but for composition (e + ◌́ becomes é).
    """
    composed = unicodedata.normalize("NFC", text.replace(SPACE_MARK, "_"))
    if not composed.isprintable():  # true of spaces and letters, false of control characters and odd spaces
        composed = "".join(" " if _is_blank(character) else character for character in composed)
    return " ".join(composed.split())


def _is_blank(character: str) -> bool:
    return unicodedata.category(character) in ("Cc", "Zl", "Zp", "Zs") or character == "\ufeff"
