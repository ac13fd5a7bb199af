"""Letters that are hard to type: what is written in their place, and which languages have them.

Where a keyboard has no ɛ or ɔ, people take a Greek epsilon or a reversed c, which look the same and are other
characters: to a model, other words. Only signs that cannot mean anything else in these languages are in the table, and
not the 3 and the ) that are also written for ɛ and ɔ.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable
from functools import cache

from transduce.text.languages import language_code

__all__ = ["letters_of", "meant_letters"]

LOOK_ALIKES = {
    "ɛ": "ε\u03f5\u0511\u0454",  # Greek epsilon and its other form, Cyrillic reversed ze and Ukrainian ie
    "Ɛ": "\u0510\u0404",  # the capitals of the last two; that of epsilon looks like E
    "ɔ": "\u037b\u2184\u1d10",  # Greek reversed sigma, reversed c, small capital open o
    "Ɔ": "\u03fd\u2183",
    "ɣ": "γ",
    "ʋ": "υ",
}
ALPHABETS = {
    "ɔɛ": "twi fat ada gaa nzi bci bm dyu ln",
    "ɔɛɣ": "dag",
    "ɔɛɣʋ": "ee",
}
"""The letters of the table, small, and the languages that have them."""
LETTERS = {language: letters for letters, languages in ALPHABETS.items() for language in languages.split()}
FOREIGN = re.compile("[\u0370-\u03ff\u0400-\u052f\u1f00-\u1fff]")
"""Greek and Cyrillic."""
WORD = re.compile(r"[^\W\d_](?:[^\W\d_]|[\u0300-\u036f])*")


def letters_of(languages: Iterable[str | None]) -> str:
    """The letters of the table that all of these languages write; none if one of them is not known."""
    sets = [set(LETTERS.get(language_code(language), "") if language else "") for language in languages]
    return "".join(sorted(set.intersection(*sets))) if sets else ""


def meant_letters(text: str, letters: str) -> str:
    """A text in NFC with its look-alikes of these letters, and of their capitals, replaced by them.

    A word that has other Greek or Cyrillic letters as well is Greek or Cyrillic, and stays.
    """
    if text.isascii():
        return text
    table, found = _look_alikes(letters)
    decomposed = unicodedata.normalize("NFD", text)  # so that ε is found under an accent too
    if not found.search(decomposed):
        return text

    def meant(word: re.Match[str]) -> str:
        replaced = word.group().translate(table)
        return word.group() if FOREIGN.search(replaced) else replaced

    return unicodedata.normalize("NFC", WORD.sub(meant, decomposed))


@cache
def _look_alikes(letters: str) -> tuple[dict[int, str], re.Pattern[str]]:
    wanted = [letter for letter in LOOK_ALIKES if letter.lower() in letters]
    table = {ord(sign): letter for letter in wanted for sign in LOOK_ALIKES[letter]}
    return table, re.compile(f"[{''.join(map(chr, table))}]" if table else r"(?!)")
