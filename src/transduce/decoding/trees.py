"""How trees are decoded (§6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from transduce.decoding.brackets import Brackets
from transduce.decoding.options import DecodingOptions
from transduce.text.trees import DEEPEST, SymbolIds

__all__ = ["tree_options"]

PAPERS = {"alpha": 0.3, "max_length_extra": 300}
"""What the paper decodes trees with, but for its beam of 21, which costs five times as much as 4."""


def tree_options(symbols: SymbolIds, words: Sequence[tuple[int, ...]], **overrides: Any) -> DecodingOptions:
    """Options with which nothing but trees over the words of each sentence is written.

    `words` are the ids of each sentence's words, as `symbols.of_words` gives them; `overrides` are other options.
    """
    brackets = Brackets(
        openings=symbols.openings,
        closings=symbols.closings,
        leaves=symbols.endings,
        words=tuple(words),
        deepest=DEEPEST,
    )
    return DecodingOptions().replace(**PAPERS | overrides | {"prefix": symbols.start, "brackets": brackets})
