"""What treebanks agree on since Penn's: how a tree is bracketed, and what counts as a word."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, field

from transduce.errors import InputError
from transduce.text.normalise import normalise
from transduce.text.trees import DEEPEST, TOP, Tree

__all__ = ["read_tree", "split_words"]

TOPS = ("", TOP, "ROOT", "S1")
"""Labels of a bracket around the whole that says nothing."""
TRACE = "-NONE-"
"""The part of speech of what is not written but understood."""
TOKEN = re.compile(r"[()]|[^\s()]+")
LABEL = re.compile(r"-\w+-|[^-=|*]+")
"""A label without its function tags: NP of NP-SBJ-1 and of NP=2, but -LRB- whole."""
SPELLINGS = {
    "-LRB-": "(", "-RRB-": ")", "-LSB-": "[", "-RSB-": "]", "-LCB-": "{", "-RCB-": "}",
    "``": '"', "''": '"', "\\/": "/", "\\*": "*",
}  # fmt: skip
"""How treebanks write characters that mean something else to them."""
SPELLING = re.compile("|".join(map(re.escape, SPELLINGS)))

WORDS = re.compile(
    r"""
      https?://\S*[\w/]                                      # addresses
    | \d+(?:[.,]\d+)*(?!\w)                                  # numbers: 9.2, 1,000
    | (?:[^\W\d_]\.){2,}                                     # e.g., U.S.
    | (?:al|approx|cf|dr|etc|figs?|jr|mrs?|ms|prof|st|vs)\.(?=\s+\S)    # abbreviations inside of a sentence
    | (?:anti|co|de|ex|inter|multi|non|over|post|pre|re|semi|sub|super|un|under)-\w+    # prefixes that are no words
    | \w+?(?=n['’]t\b) | n['’]t\b | ['’](?:s|re|ve|ll|d|m)\b                         # do n't, it 's
    | \w+ | \.{3} | -- | \S
    """,
    re.IGNORECASE | re.VERBOSE,
)


def read_tree(text: str, where: str | None = None) -> Tree | None:
    """The tree of a line of a treebank, such as "( (S (NP-SBJ (PRP It)) (VP (VBZ rains)) (. .)) )".

    Traces and what holds nothing else, function tags, parts of speech and an empty bracket around all are left out;
    None where nothing remains. Brackets and quotes among the words become the characters that they stand for. `where`
    is named in messages, such as "trees.mrg:12".
    """
    try:
        roots = _roots(TOKEN.findall(normalise(text)))
    except InputError as error:
        raise InputError(error.what, where=where, remedy=error.remedy) from error
    if not roots:
        return None
    return roots[0] if len(roots) == 1 and isinstance(roots[0], Tree) else Tree(TOP, tuple(roots))


def split_words(sentence: str) -> list[str]:
    """The words of a sentence as newer treebanks count them: punctuation, hyphens and endings such as n't stand alone.

    "I don't know (yet)." has the words I do n't know ( yet ) . of which nothing is missing.
    """
    return WORDS.findall(normalise(sentence))


@dataclass
class _Bracket:
    """A bracket that is not closed yet."""

    label: str = ""
    word: str = ""
    """That of a part of speech."""
    parts: list[Tree | str] = field(default_factory=list)
    is_bare: bool = True
    """Whether there is no more in it than a label."""


def _roots(tokens: Sequence[str]) -> list[Tree | str]:
    """What stands in the outermost bracket, or that bracket itself if it says something."""
    holding = [_Bracket()]
    for number, token in enumerate(tokens):
        inner = holding[-1]
        if len(holding) == 1 and (number or token != "("):
            raise _unreadable(f"{token!r} stands outside of the tree", "Write one tree a line, all in one bracket.")
        if token == "(":
            if inner.word:
                raise _unreadable(f"a bracket follows the word {inner.word!r}", "Write each word as (NN word).")
            inner.is_bare = False
            holding.append(_Bracket())
        elif token == ")":
            if inner.is_bare:
                raise _unreadable(f"nothing is in '({inner.label})'", "Leave that bracket out.")
            holding.pop()
            holding[-1].parts += _closed(inner, outermost=len(holding) == 1)
        elif inner.is_bare and not inner.label:
            inner.label = token
        elif inner.is_bare:
            inner.word, inner.is_bare = token, False
        else:
            raise _unreadable(f"the word {token!r} has no bracket of its own", "Write each word as (NN word).")
        if len(holding) > DEEPEST + 2:  # one more for the part of speech, one for what holds it all
            raise _unreadable(f"it has more than {DEEPEST} levels", "Look for brackets that are not closed.")
    if len(holding) > 1 or not tokens:
        raise _unreadable(f"{len(holding) - 1} brackets are not closed", "Write one tree a line.")
    return holding[0].parts


def _closed(bracket: _Bracket, outermost: bool) -> list[Tree | str]:
    """What a bracket is worth: a word, a constituent, its own parts or nothing."""
    if bracket.word:
        spelt = SPELLING.sub(lambda found: SPELLINGS[found.group()], bracket.word)
        return [] if bracket.label == TRACE else [spelt]
    if not bracket.parts or (outermost and bracket.label in TOPS):
        return bracket.parts
    label = LABEL.match(bracket.label)
    if label is None:
        raise _unreadable(f"a bracket has no label, but {bracket.label!r}", "Write constituents as (NP …).")
    return [Tree(label.group(), tuple(bracket.parts))]


def _unreadable(what: str, remedy: str) -> InputError:
    return InputError(f"not a tree: {what}.", remedy=remedy)
