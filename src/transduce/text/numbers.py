"""Numbers that survive a translation: their digits do, however a language groups and points them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Sequence

__all__ = ["are_kept", "digits_of", "lost_numbers"]

NUMBER = re.compile(r"\d+(?:[.,:'’ \u00a0\u202f/–-]\d+)*")
RUN = re.compile(r"\d+")


def digits_of(text: str) -> str:
    """The digits of a text, in Arabic numerals, without what stands between them."""
    return "".join(str(unicodedata.decimal(character)) for character in text if character.isdecimal())


def lost_numbers(numbers: Sequence[str], text: str) -> list[int]:
    """Which of some numbers are not in a text: 1,000 may be 1.000 or 1000 there, but 15 does not hold 5.

    What is said twice must be there twice.
    """
    there = [[digits_of(run) for run in RUN.findall(number)] for number in NUMBER.findall(text)]
    lost = []
    for index in sorted(range(len(numbers)), key=lambda index: -len(numbers[index])):
        if not _taken(there, digits_of(numbers[index])):
            lost.append(index)
    return sorted(lost)


def are_kept(pairs: Iterable[tuple[str, str]]) -> bool:
    """Whether a translation is to hold the numbers of its source: more than a third of those pairs do that have some.

    Where digits become words, as in a toy task, none does. But people write *drei* for 3 as well, half of the time.
    """
    numbered = [(numbers, target) for source, target in pairs if (numbers := NUMBER.findall(source))]
    return not numbered or 3 * sum(not lost_numbers(numbers, target) for numbers, target in numbered) > len(numbered)


def _taken(there: list[list[str]], digits: str) -> bool:
    """Whether digits are there as whole runs that follow one another; they are taken out."""
    for runs in there:
        for start in range(len(runs)):
            for end in range(start + 1, len(runs) + 1):
                if "".join(runs[start:end]) == digits:
                    runs[start:end] = [""] * (end - start)
                    return True
    return False
