"""Texts in which [MASK] stands for a hidden piece."""

from __future__ import annotations

from transduce.text.tokenizer import MASK, Tokenizer

__all__ = ["WRITTEN_MASK", "encode_masked"]

WRITTEN_MASK = "[MASK]"
"""How people write a hidden piece."""


def encode_masked(vocabulary: Tokenizer, text: str) -> list[int]:
    """Ids of a text, with the mask's wherever it says [MASK]."""
    first, *others = text.split(WRITTEN_MASK)
    ids = vocabulary.encode(first)
    for part in others:
        ids += [vocabulary.tag(MASK), *vocabulary.encode_continued(part)]
    return ids
