"""Texts cut into sentences, and put together again with the spacing they had."""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["Segment", "segments"]


class Segment(NamedTuple):
    """A sentence and the white space after it; joined, all segments of a text are the text."""

    sentence: str
    space: str


def segments(text: str, language: str | None = None) -> list[Segment]:
    """The sentences of a text, line by line. White space before the first is a segment of its own."""
    sentences = (sentence for line in text.splitlines() for sentence in _sentences(line, language))
    return _with_spaces(text, [sentence.strip() for sentence in sentences])


def _sentences(line: str, language: str | None) -> list[str]:
    from sentencex import segment

    found: list[str] = segment(language or "en", line)
    return found


def _with_spaces(text: str, sentences: list[str]) -> list[Segment]:
    parts: list[Segment] = []
    position = 0
    for sentence in filter(None, sentences):
        start = text.index(sentence, position)
        if start > position:
            gap = text[position:start]
            if parts:
                parts[-1] = Segment(parts[-1].sentence, parts[-1].space + gap)
            else:
                parts.append(Segment("", gap))
        parts.append(Segment(sentence, ""))
        position = start + len(sentence)
    if position < len(text):
        rest = text[position:]
        if parts:
            parts[-1] = Segment(parts[-1].sentence, parts[-1].space + rest)
        else:
            parts.append(Segment("", rest))
    return parts
