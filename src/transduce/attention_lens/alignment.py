"""Which word comes from which: for each word of a translation, the source word that it looks at most."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from transduce.attention_lens.maps import AttentionMaps
from transduce.attention_lens.words import Labels, Word

__all__ = ["Found", "Link", "Span", "links"]


class Span(NamedTuple):
    """A part of a text: its first character, and the one after its last."""

    first: int
    end: int


class Link(NamedTuple):
    """A word of a translation, and the one that it comes from."""

    source: Span
    target: Span


class Found:
    """A text in which words are found one after the other."""

    def __init__(self, text: str) -> None:
        self._text, self._from = text, 0

    def spans(self, labels: Labels) -> list[Span | None]:
        """Where the words of a sentence stand; None for what is not in the text, such as the end of sentence."""
        special = {index for index, word in enumerate(labels.words) if _is_special(labels.tokens, word)}
        return [None if index in special else self._next(word.text) for index, word in enumerate(labels.words)]

    def _next(self, word: str) -> Span | None:
        first = self._text.find(word, self._from)
        if first < 0 or not word:  # it was written otherwise, such as with composed accents
            return None
        self._from = first + len(word)
        return Span(first, self._from)


def links(maps: AttentionMaps, source: Found, target: Found) -> Iterator[Link]:
    """For each word of the translation its source word, by the mean of all heads' cross-attention."""
    source_spans, target_spans = source.spans(maps.source), target.spans(maps.target)
    weights_TS = maps.at("words", "cross").mean()
    words = [index for index, span in enumerate(source_spans) if span is not None]
    for row, target_span in zip(weights_TS, target_spans, strict=True):
        if target_span is None or not words:
            continue
        source_span = source_spans[max(words, key=row.__getitem__)]
        if source_span is not None:
            yield Link(source_span, target_span)


def _is_special(tokens: list[str], word: Word) -> bool:
    first = tokens[word.first]
    return word.first == word.last and (first in ("<s>", "</s>") or first.startswith("<2"))
