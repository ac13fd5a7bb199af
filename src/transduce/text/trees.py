"""Constituents of a sentence as a tree, and the tree as a line that a translator can learn to write (§6.3).

    (S (NP (DT The) (NN cat)) (VP (VBD sat)))        as treebanks write it (see transduce.text.penn)
    *1 The*2 cat*3 sat                               the sentence as it is learned from: its words, numbered
    (S(NP*1*2)NP(VP*3)VP)S                           the tree as it is learned: a symbol a bracket, a number a word

Brackets that say what they close are those of Vinyals et al. (2015), whom the paper follows, and as there parts of
speech are left out. They write the same symbol for each word, and millions of trees teach their model to count. The
numbers spare ours that: they point at the word.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transduce.errors import InputError
from transduce.text.tokenizer import Tokenizer

__all__ = ["DEEPEST", "TOP", "Span", "SymbolIds", "Tree", "numbered", "symbols_of", "words_of"]

NUMBERS = 100
"""Words that have a number of their own; in a longer sentence the next begins with 1 again."""
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
        written = [symbol for symbol in SYMBOL.findall(symbols) if symbol[0] == "*"]
        if written != _numbers(len(words)):
            raise _no_tree(symbols, f"these are not the {len(words)} words of the sentence in their order")
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
        """As symbols, with numbers for the words: what a translator learns to write."""
        return self._symbols(iter(_numbers(len(self.words()))))

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

    def _symbols(self, numbers: Iterator[str]) -> str:
        parts = (next(numbers) if isinstance(child, str) else child._symbols(numbers) for child in self.children)
        return f"({self.label}{''.join(parts)}){self.label}"

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
    numbers: tuple[int, ...]

    @classmethod
    def of(cls, vocabulary: Tokenizer) -> SymbolIds:
        """Find them among the protected symbols."""
        symbols = vocabulary.protected
        labels = [symbol[1:] for symbol in symbols if symbol[0] == "(" and f"){symbol[1:]}" in symbols]
        if not labels or not set(symbols).issuperset(_numbers(NUMBERS)):
            raise InputError("the vocabulary has no symbols for trees.", remedy="Train a parser, from trees.")
        ids = {symbol: vocabulary.encode(symbol) for symbol in symbols}
        return cls(
            start=tuple(ids[symbols[0]][:-1]),
            openings=tuple(ids[f"({label}"][-1] for label in labels),
            closings=tuple(ids[f"){label}"][-1] for label in labels),
            numbers=tuple(ids[number][-1] for number in _numbers(NUMBERS)),
        )

    def of_words(self, count: int) -> tuple[int, ...]:
        """The numbers of a sentence of so many words."""
        return tuple(self.numbers[place % NUMBERS] for place in range(count))


def numbered(words: Sequence[str]) -> str:
    """A sentence with a number before each word: what a parser reads."""
    return "".join(f"{number} {word}" for number, word in zip(_numbers(len(words)), words, strict=True))


def words_of(sentence: str) -> list[str]:
    """The words of a numbered sentence."""
    words, place, count = [], 0, 0
    while place < len(sentence):
        mark = f"{_numbers(count + 1)[-1]} "
        if not sentence.startswith(mark, place):
            raise InputError(f"{sentence!r} is no numbered sentence.", remedy="Number its words: *1 The*2 cat.")
        # A word holds no space, so the next number that has one behind it is not part of the word.
        following = sentence.find(f"{_numbers(count + 2)[-1]} ", place + len(mark))
        end = len(sentence) if following < 0 else following
        words.append(sentence[place + len(mark) : end])
        place, count = end, count + 1
    return words


def symbols_of(labels: Iterable[str]) -> list[str]:
    """The symbols that trees with these labels are written with: what their vocabulary must keep whole."""
    return [*_numbers(NUMBERS), *(f"{bracket}{label}" for label in sorted(set(labels)) for bracket in "()")]


def _numbers(words: int) -> list[str]:
    return [f"*{place % NUMBERS + 1}" for place in range(words)]


def _spelt(word: str) -> str:
    return word.replace("(", "-LRB-").replace(")", "-RRB-")


def _no_tree(symbols: str, why: str) -> InputError:
    return InputError(f"{symbols!r} is no tree: {why}.", remedy="Decode with brackets, which balances them.")
