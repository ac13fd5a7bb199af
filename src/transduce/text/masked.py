"""Texts in which [MASK] stands for a hidden piece."""

from __future__ import annotations

from transduce.text.normalise import SPACE_MARK
from transduce.text.tokenizer import MASK, Tokenizer

__all__ = ["WRITTEN_MASK", "encode_masked"]

WRITTEN_MASK = "[MASK]"
"""How people write a hidden piece."""


def encode_masked(vocabulary: Tokenizer, text: str) -> list[int]:
    """Ids of a text, with the mask's wherever it says [MASK]."""
    first, *others = text.split(WRITTEN_MASK)
    ids = vocabulary.encode(first)
    for part in others:
        more = vocabulary.encode(part)
        # What follows a mask without a space, such as a full stop, is read without one.
        joined = part[:1].strip() and more and vocabulary.pieces(more[:1]) == [SPACE_MARK]
        ids += [vocabulary.tag(MASK), *(more[1:] if joined else more)]
    return ids
