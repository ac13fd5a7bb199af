"""Constituents of a sentence as a tree, and the tree as a line that a translator can learn to write (§6.3).

    (S (NP (DT The) (NN cat)) (VP (VBD sat)))        as treebanks write it (see transduce.text.penn)
    (S(NP*223*356)NP(VP*356)VP)S                     as it is learned, a symbol for each bracket and each word

Brackets that say what they close are those of Vinyals et al. (2015), whom the paper follows, and as there parts of
speech are left out. They write the same symbol for all words, so that only millions of trees teach a model which word
it is at. Ours has a few hundred, by how a word ends: to write the right one is to look at the right word, and a small
model soon learns that. The n-th of them stands for the n-th word, whatever it is.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple
from zlib import crc32

from transduce.errors import InputError
from transduce.text.tokenizer import Tokenizer

__all__ = ["DEEPEST", "TOP", "Span", "SymbolIds", "Tree", "symbols_of"]

ENDINGS = 500
"""Symbols for words: about as many as there are common endings of two letters."""
TOP = "TOP"
"""The label over a sentence that has no constituent of its own around it."""
DEEPEST = 100
"""Levels of the deepest tree; those of treebanks have at most about forty."""
TAG = "XX"
"""Written for parts of speech, which are not known."""
SYMBOL = re.compile(r"[()][^()*\s]+|\*\d+")


class Span(NamedTuple):
    """A constituent: its label, and its words from `start` up to `end`, which is not part of it."""

    label: str
    start: int
    end: int


@dataclass(frozen=True)
class Tree:
    """A constituent: a label over words and other constituents. `str(tree)` writes it as treebanks do."""

    label: str
    children: tuple[Tree | str, ...]

    @classmethod
    def of_symbols(cls, symbols: str, words: Sequence[str]) -> Tree:
        """The tree that was written as symbols, over the words of its sentence."""
        if SYMBOL.sub("", symbols):
            raise _no_tree(symbols, "there is more in it than brackets and words")
        if symbols.count("*") != len(words):
            raise _no_tree(symbols, f"it is over {symbols.count('*')} words, the sentence has {len(words)}")
        left = iter(words)
        holding: list[tuple[str, list[Tree | str]]] = [("", [])]  # the label and the parts of each bracket that is open
        for symbol in SYMBOL.findall(symbols):
            label, parts = holding[-1]
            if symbol[0] == "*":
                parts.append(next(left))
            elif symbol[0] == "(":
                holding.append((symbol[1:], []))
            elif symbol[1:] == label and parts:
                holding.pop()
                holding[-1][1].append(cls(label, tuple(parts)))
            else:
                raise _no_tree(symbols, f"{symbol!r} closes nothing")
        roots = holding[0][1]
        if len(holding) > 1 or len(roots) != 1 or isinstance(roots[0], str):
            raise _no_tree(symbols, "not all of it is in one bracket that is closed")
        return roots[0]

    def symbols(self) -> str:
        """As symbols: what a translator learns to write."""
        parts = (_symbol(child) if isinstance(child, str) else child.symbols() for child in self.children)
        return f"({self.label}{''.join(parts)}){self.label}"

    def words(self) -> list[str]:
        """The sentence."""
        parts = ([child] if isinstance(child, str) else child.words() for child in self.children)
        return [word for part in parts for word in part]

    def labels(self) -> set[str]:
        """The labels of all constituents."""
        return {self.label}.union(*(child.labels() for child in self.children if isinstance(child, Tree)))

    def spans(self, start: int = 0) -> list[Span]:
        """All constituents, each before those in it; `start` is the number of the first word."""
        inside: list[Span] = []
        end = start
        for child in self.children:
            if isinstance(child, str):
                end += 1
            else:
                below = child.spans(end)
                end = below[0].end
                inside += below
        return [Span(self.label, start, end), *inside]

    def __str__(self) -> str:
        inside = (f"({TAG} {_spelt(child)})" if isinstance(child, str) else str(child) for child in self.children)
        return f"({self.label} {' '.join(inside)})"


@dataclass(frozen=True)
class SymbolIds:
    """The ids of the symbols in a vocabulary: all that decoding needs to know of them."""

    start: tuple[int, ...]
    """What SentencePiece puts before every line."""
    openings: tuple[int, ...]
    closings: tuple[int, ...]
    """That of the n-th opening bracket is the n-th."""
    endings: tuple[int, ...]
    """Those of words."""

    @classmethod
    def of(cls, vocabulary: Tokenizer) -> SymbolIds:
        """Find them among the protected symbols."""
        symbols = vocabulary.protected
        labels = [symbol[1:] for symbol in symbols if symbol[0] == "(" and f"){symbol[1:]}" in symbols]
        if not labels or not set(symbols).issuperset(_endings()):
            raise InputError("the vocabulary has no symbols for trees.", remedy="Train a parser, from trees.")
        ids = {symbol: vocabulary.encode(symbol) for symbol in symbols}
        return cls(
            start=tuple(ids[symbols[0]][:-1]),
            openings=tuple(ids[f"({label}"][-1] for label in labels),
            closings=tuple(ids[f"){label}"][-1] for label in labels),
            endings=tuple(ids[ending][-1] for ending in _endings()),
        )

    def of_words(self, words: Sequence[str]) -> tuple[int, ...]:
        """The ids of the words of a sentence."""
        return tuple(self.endings[_ending(word)] for word in words)


def symbols_of(labels: Iterable[str]) -> list[str]:
    """The symbols that trees with these labels are written with: what their vocabulary must keep whole."""
    return [*_endings(), *(f"{bracket}{label}" for label in sorted(set(labels)) for bracket in "()")]


def _symbol(word: str) -> str:
    return f"*{_ending(word)}"


def _ending(word: str) -> int:
    """The number of a word's ending: the same in every process, for every script."""
    return crc32(word.lower()[-2:].encode()) % ENDINGS


def _endings() -> list[str]:
    return [f"*{ending}" for ending in range(ENDINGS)]


def _spelt(word: str) -> str:
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def _no_tree(symbols: str, why: str) -> InputError:
    return InputError(f"{symbols!r} is no tree: {why}.", remedy="Decode with brackets, which balances them.")
