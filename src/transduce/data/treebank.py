"""Trees as a corpus: the sentence is the source, the tree written as symbols its translation."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from transduce.data.clean import CleaningRules
from transduce.data.corpus import Corpus, Pair, read_lines
from transduce.errors import InputError
from transduce.text.penn import read_tree
from transduce.text.trees import Tree, symbols_of

__all__ = ["TREE_RULES", "Treebank", "protected_symbols"]

TREE_RULES = CleaningRules(max_characters=20_000, max_ratio=10_000)
"""Symbols have no spaces between them: by words, a tree is always of unlike length."""


@dataclass(frozen=True)
class Treebank(Corpus):
    """A file of bracketed trees, one a line; plain, gzip or xz."""

    def trees(self) -> Iterator[Tree]:
        """All trees in order, without blank lines and those that hold only traces."""
        found = False
        for number, line in enumerate(read_lines(self.source), start=1):
            tree = read_tree(line, where=f"{self.source}:{number}") if line.strip() else None
            if tree is not None:
                found = True
                yield tree
        if not found:
            raise InputError("there are no trees.", where=str(self.source), remedy="Write a bracketed tree a line.")

    def pairs(self, *, allow_identical: bool = False) -> Iterator[Pair]:
        """Sentences, with a space before each word but the first, and their trees as symbols."""
        return (Pair(" ".join(tree.words()), tree.symbols()) for tree in self.trees())


def protected_symbols(treebanks: Iterable[Treebank]) -> list[str]:
    """The symbols of all trees, for the vocabulary to keep whole."""
    return symbols_of(label for treebank in treebanks for tree in treebank.trees() for label in tree.labels())
