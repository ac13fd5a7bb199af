"""Texts that say something over and over: found, and cut.

What counts is how much more a translation repeats than its source: "no no no no no" may be said as often again.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from functools import cached_property
from typing import NamedTuple

__all__ = ["Repetition", "may_repeat"]

FEWEST = 3
"""Tokens that a text must hold besides those that differ, before anything in it can be a loop."""
WORD = re.compile(r"\w+")
LONGEST_PHRASE = 30
"""Words of the longest phrase whose repetition is looked for."""
CHARACTERS = re.compile(r"(\S(?:.{0,29}?\S)?)(?: ?\1){3,}", re.DOTALL)
"""The same few characters four times or more, as in languages that do not part their words."""
OFTEN = 4
"""How often three words may not come back, wherever they stand."""


class _Span(NamedTuple):
    start: int
    end: int


def may_repeat(tokens: Sequence[int]) -> bool:
    """Whether it is worth a closer look: quick, and false for nearly all sentences."""
    return len(tokens) - len(set(tokens)) >= FEWEST


class Repetition:
    """What a source says more than once, and with it what a translation of it may."""

    def __init__(self, source: str) -> None:
        self._source = " ".join(source.split())

    def is_in(self, text: str) -> bool:
        """Whether a translation repeats what its source does not."""
        return self._excess(text) is not None

    def cut(self, text: str) -> str:
        """A translation without what it repeats."""
        while (excess := self._excess(text)) is not None:
            before, after = text[: excess.start], text[excess.end :]
            text = " ".join((before + after).split()) if after else before.rstrip(" ,;:–-")
        return text

    def _excess(self, text: str) -> _Span | None:
        """What to leave out of a text, if anything: it never reaches the start."""
        found = list(WORD.finditer(text))
        words = [each.group().casefold() for each in found]
        if len(set(words)) < len(words):
            if _first_run(words, 1) and (run := _first_run(words, self._run)):
                return _Span(found[run.start].start(), found[run.end].start() if run.end < len(found) else len(text))
            if (place := self._comes_back(words)) is not None:
                return _Span(found[place].start(), len(text))
        for run_of_characters in CHARACTERS.finditer(text):
            unit = run_of_characters.group(1)
            most = max(5 if len(unit) < 4 else 3, self._characters)
            places = [each.start() for each in re.finditer(re.escape(unit), run_of_characters.group())]
            if len(places) > most:
                return _Span(run_of_characters.start() + places[most], run_of_characters.end())
        return None

    def _comes_back(self, words: list[str]) -> int | None:
        """Where three words come once too often."""
        if len(words) < 3 * OFTEN:
            return None
        counts: Counter[tuple[str, ...]] = Counter()
        for place in range(len(words) - 2):
            phrase = tuple(words[place : place + 3])
            counts[phrase] += 1
            if counts[phrase] >= OFTEN and counts[phrase] > self._often:
                return place
        return None

    @cached_property
    def _words(self) -> list[str]:
        return [word.casefold() for word in WORD.findall(self._source)]

    @cached_property
    def _run(self) -> int:
        """How often the source says the same at once; of numbers alone, which may be put in order, at all."""
        if not any(map(str.isalpha, self._source)):
            return max([1, *Counter(self._words).values()])
        single = _run_at(self._words, 1)[0]
        # A word said three times is no reason to say a phrase three times.
        return max(
            [single if single > 3 else single - 1, 1]
            + [_run_at(self._words, phrase)[0] for phrase in range(2, LONGEST_PHRASE + 1)]
        )

    @cached_property
    def _often(self) -> int:
        """How often the source comes back to the same."""
        words = Counter(word for word in self._words if len(word) > 3)
        pairs = Counter(zip(self._words, self._words[1:], strict=False))
        return max([1, *words.values(), *pairs.values()])

    @cached_property
    def _characters(self) -> int:
        """How often the source writes the same few characters at once."""
        return max((run.group().count(run.group(1)) for run in CHARACTERS.finditer(self._source)), default=1)


def _first_run(words: list[str], allowed: int) -> _Span | None:
    """The words to leave out of the first phrase that is said too often at once."""
    for phrase in range(1, min(LONGEST_PHRASE, len(words) // 2) + 1):
        usual = 3 if phrase == 1 else 2 if phrase < 4 else 1
        most = max(usual, allowed)
        often, start = _run_at(words, phrase)
        if often > most:
            return _Span(start + most * phrase, start + often * phrase)
    return None


def _run_at(words: list[str], phrase: int) -> tuple[int, int]:
    """How often a phrase of so many words is said at once, at most, and where that starts."""
    best, best_start, same = 1, 0, 0
    for place in range(phrase, len(words)):
        same = same + 1 if words[place] == words[place - phrase] else 0
        if same // phrase + 1 > best:
            best, best_start = same // phrase + 1, place - same - phrase + 1
    return best, best_start
