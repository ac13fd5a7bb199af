"""How good are trees: labelled brackets found and missed, as EVALB counts them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from transduce.errors import InputError
from transduce.text.trees import TOP, Span, Tree

__all__ = ["ParseScores", "score_trees"]

PUNCTUATION = frozenset(
    [",", ":", ";", ".", "?", "!", "-", "--", "–", "—", "...", "…", '"', "“", "”", "‘", "’", "``", "''"]
)
"""Words that are left out of both trees before brackets are compared, as EVALB leaves out these parts of speech."""
ALIKE = {"PRT": "ADVP"}
"""Labels that count as one, as with EVALB's usual parameters."""


@dataclass(frozen=True)
class ParseScores:
    """Of all trees together; shares from 0 to 100."""

    trees: int
    gold: int
    """Brackets of the right trees."""
    written: int
    """Brackets of the parser's."""
    found: int
    """Brackets that are in both: the same label over the same words."""
    exact: float
    """The share of trees that are right in every bracket."""
    unreadable: int
    """Trees that the parser did not write, or not over the words of the sentence: all their brackets are missed."""

    @property
    def precision(self) -> float:
        """The share of the parser's brackets that are right."""
        return 100 * self.found / self.written if self.written else 0.0

    @property
    def recall(self) -> float:
        """The share of the right brackets that the parser has found."""
        return 100 * self.found / self.gold if self.gold else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall."""
        return 200 * self.found / (self.written + self.gold) if self.found else 0.0

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        shares = {"f1": self.f1, "precision": self.precision, "recall": self.recall, "exact": self.exact}
        return {"trees": self.trees, **shares, "unreadable": self.unreadable}

    @property
    def signature(self) -> str:
        """What was counted: scores are comparable where it is the same."""
        return "brackets:labelled|punctuation:left out|root:not counted|PRT:as ADVP|unreadable:missed"


def score_trees(hypotheses: Sequence[Tree | None], references: Sequence[Tree]) -> ParseScores:
    """Compare a parser's trees with the right ones, in the same order; None is a tree that could not be read.

    As EVALB counts with its usual parameters: a bracket is right if the other tree has one of the same label over the
    same words, each counted as often as it is there; TOP does not count, PRT is taken for ADVP, and punctuation is left
    out first. What is punctuation is told by the word, since parts of speech are not known.
    """
    if len(hypotheses) != len(references):
        raise InputError(
            f"{len(hypotheses)} trees for {len(references)} right ones.", remedy="Give one tree for each sentence."
        )
    gold = written = found = exact = unreadable = 0
    for hypothesis, reference in zip(hypotheses, references, strict=True):
        right = _brackets(reference)
        gold += right.total()
        if hypothesis is None or hypothesis.words() != reference.words():
            unreadable += 1
            continue
        ours = _brackets(hypothesis)
        written += ours.total()
        found += (ours & right).total()
        exact += ours == right
    share = 100 * exact / len(references) if references else 0.0
    return ParseScores(len(references), gold, written, found, share, unreadable)


def _brackets(tree: Tree) -> Counter[Span]:
    """The brackets that count, over the words that count; those that hold none of these are left out."""
    place = [0]  # how many words that count stand before each word
    for word in tree.words():
        place.append(place[-1] + (word not in PUNCTUATION))
    spans = (Span(ALIKE.get(label, label), place[start], place[end]) for label, start, end in tree.spans())
    return Counter(span for span in spans if span.label != TOP and span.start < span.end)
