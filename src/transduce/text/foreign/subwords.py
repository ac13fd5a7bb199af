"""Byte-pair encoding as subword-nmt and fastBPE write it (Sennrich et al., 2016): merges of characters of a word."""

from __future__ import annotations

from functools import lru_cache
from itertools import pairwise

from transduce.errors import InputError

__all__ = ["CONTINUED", "SubwordUnits"]

CONTINUED = "@@"
"""Ends a unit that is not the last of its word."""
WORD_END = "</w>"
REMEMBERED = 50_000
"""Words whose units are kept."""


class SubwordUnits:
    """Cuts words into units by merges that were learned, the first learned first."""

    def __init__(self, merges: list[tuple[str, str]], apart: bool = False) -> None:
        """Of `merges` in their order; `apart` if a word's end is a symbol of its own (codes before version 0.2)."""
        self._ranks: dict[tuple[str, str], int] = {}
        for rank, pair in enumerate(merges):
            self._ranks.setdefault(pair, rank)
        self._apart = apart
        self._units = lru_cache(REMEMBERED)(self._cut_word)

    @classmethod
    def parse(cls, codes: str | None) -> SubwordUnits:
        """Of a file's contents: two symbols a line, in fastBPE's files with a count; None is a dictionary of words."""
        if codes is None:
            return cls([])
        lines = codes.split("\n")
        version = lines[0].removeprefix("#version:").strip() if lines[0].startswith("#version:") else None
        merges = []
        for number, line in enumerate(lines):
            parts = line.rstrip("\r").split(" ")
            if not line.strip() or (number == 0 and version):
                continue
            if len(parts) not in (2, 3) or not all(parts) or (len(parts) == 3 and not parts[2].isdigit()):
                raise InputError(
                    f"line {number + 1} of the codes is not a merge of two symbols.", remedy="Copy the file again."
                )
            merges.append((parts[0], parts[1]))
        counted = bool(merges) and len(lines[0].split(" ")) == 3  # fastBPE: the end belongs to the last letter
        return cls(merges, apart=not counted and version in (None, "0.1"))

    def cut(self, text: str) -> list[str]:
        """The units of a text, whose words stand between spaces."""
        return [unit for word in text.split() for unit in self._units(word)]

    def _cut_word(self, word: str) -> tuple[str, ...]:
        if not self._ranks:
            return (word,)
        symbols = [*word, WORD_END] if self._apart else [*word[:-1], word[-1] + WORD_END]
        while len(symbols) > 1:
            best = min(pairwise(symbols), key=lambda pair: self._ranks.get(pair, len(self._ranks)))
            if best not in self._ranks:
                break
            merged, place = [], 0
            while place < len(symbols):  # wherever the pair stands, from the left
                together = tuple(symbols[place : place + 2]) == best
                merged.append("".join(best) if together else symbols[place])
                place += 2 if together else 1
            symbols = merged
        if symbols[-1] == WORD_END:
            symbols.pop()
        else:
            symbols[-1] = symbols[-1].removesuffix(WORD_END)
        return (*(symbol + CONTINUED for symbol in symbols[:-1]), symbols[-1])
