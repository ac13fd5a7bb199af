"""What the rows and columns of a map are called: subwords as the model reads them, and the words that they make up."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass

from transduce.text.masked import WRITTEN_MASK
from transduce.text.normalise import SPACE_MARK
from transduce.text.tokenizer import BOS, EOS, MASK, NEWLINE, Tokenizer

__all__ = ["END", "LINE_END", "START", "Labels", "Word", "labels_of"]

START, END = "start", "end"
"""What people see of the ids that begin and end a sentence."""
LINE_END = "↵"
"""What people see of the piece that ends a line."""

UNSPACED = re.compile(
    "[\u0e00-\u0fff\u1000-\u109f\u1780-\u17ff\u2e80-\ua4cf\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff]"
)
"""Scripts without spaces between words (Thai to Khmer, Chinese, Japanese): a piece is the best guess at a word."""


@dataclass(frozen=True)
class Word:
    """A word and the tokens that it is made of, `first` … `last`."""

    text: str
    first: int
    last: int


@dataclass(frozen=True)
class Labels:
    """One side of a map: its text, its tokens as SentencePiece writes them, and its words."""

    text: str
    tokens: list[str]
    words: list[Word]

    def shifted(self) -> Labels:
        """What a decoder has read while it writes these tokens: the start, and all of them but the last."""
        last = len(self.tokens) - 2
        words = [Word(word.text, word.first + 1, min(word.last, last) + 1) for word in self.words if word.first <= last]
        return Labels(self.text, ["<s>", *self.tokens[:-1]], [Word(START, 0, 0), *words])


def labels_of(ids: Sequence[int], tokenizer: Tokenizer) -> Labels:
    """The labels of ids: a word begins at a space or a protected symbol; tags and ends are words of their own.

    Pieces that are bytes belong to their word, whose text is whole again.
    """
    tokens = tokenizer.pieces(ids)
    special = {BOS, EOS, *tokenizer.tags}
    alone = special | {index for index, token in zip(ids, tokens, strict=True) if token == NEWLINE}
    protected = frozenset(tokenizer.protected)
    words: list[Word] = []
    first = 0
    for place in range(1, len(tokens) + 1):
        at_end = place == len(tokens)
        if (
            at_end
            or ids[place] in alone
            or ids[place - 1] in alone
            or _begins(tokens[place], tokens[place - 1], protected)
        ):
            words.append(Word(_text(ids[first:place], tokens[first:place], tokenizer), first, place - 1))
            first = place
    if MASK in tokens:
        return Labels(_with_masks(tokens, words), tokens, words)
    return Labels(tokenizer.decode(index for index in ids if index not in special), tokens, words)


def _begins(token: str, before: str, protected: frozenset[str]) -> bool:
    """Whether a word begins with this token."""
    if token.startswith(SPACE_MARK):
        return True
    unspaced = UNSPACED.match(token) and not unicodedata.category(token[0]).startswith("M")
    return before != SPACE_MARK and (bool(unspaced) or token in protected)


def _text(ids: Sequence[int], tokens: Sequence[str], tokenizer: Tokenizer) -> str:
    names = {BOS: START, EOS: END} | dict.fromkeys(tokenizer.tags, tokens[0])
    if tokens[0] == NEWLINE:
        return LINE_END
    return names.get(ids[0]) or tokenizer.decode(ids).strip() or "".join(tokens)


def _with_masks(tokens: Sequence[str], words: Sequence[Word]) -> str:
    """A text whose masks are as people write them."""
    parts = [
        WRITTEN_MASK if tokens[word.first] == MASK else word.text
        for word in words
        if tokens[word.first] not in ("<s>", "</s>")
    ]
    return re.sub(r" (?=[.,;:!?])", "", " ".join(parts))
