"""Dropping pairs that cannot teach translation, and counting why."""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from hashlib import blake2b

from transduce.data.corpus import Pair
from transduce.errors import ConfigError

__all__ = ["CleaningCounts", "CleaningRules", "SeenPairs", "clean"]

# Added to what the ratio allows, so that one word may become seven, as in "Congratulations!".
RATIO_SLACK = 3

# Scripts that put no spaces between words: Thai, Lao, Tibetan, Burmese, Khmer, kana and Chinese characters.
UNSPACED = re.compile("[\u0e00-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]")


@dataclass(frozen=True, kw_only=True)
class CleaningRules:
    """Which pairs to drop, besides those with an empty side. The defaults drop little from a good corpus."""

    max_words: int = 250
    """On either side. Words stand between spaces; where a script writes none, two characters count as a word."""
    max_characters: int = 2000
    """On either side."""
    max_ratio: float = 6.0
    """One side may have this many times the words of the other, and three more."""
    duplicates: bool = True
    """Whether to drop pairs that were there before, both sides exactly alike."""

    def __post_init__(self) -> None:
        for name in ("max_words", "max_characters", "max_ratio"):
            if not getattr(self, name) >= 1:
                raise ConfigError(f"{name}={getattr(self, name)} cannot work.", remedy="It must be 1 or more.")


@dataclass
class CleaningCounts:
    """Pairs read, kept, and dropped by reason; `clean` counts on in the record it is given."""

    read: int = 0
    kept: int = 0
    empty: int = 0
    """One side is blank, or both are."""
    too_long: int = 0
    ratio: int = 0
    """The lengths are too unlike for one side to translate the other."""
    duplicate: int = 0

    def as_dict(self) -> dict[str, int]:
        """The counts by name, as for a JSON file."""
        return asdict(self)

    def summary(self) -> str:
        """One line in words, such as "Kept 97 of 100 pairs; dropped 2 too long, 1 duplicate"."""
        if self.kept == self.read:
            return f"Kept all {self.read:,} pairs."
        reasons = {
            "empty": self.empty,
            "too long": self.too_long,
            "of unlike lengths": self.ratio,
            "duplicate": self.duplicate,
        }
        dropped = ", ".join(f"{count:,} {reason}" for reason, count in reasons.items() if count)
        return f"Kept {self.kept:,} of {self.read:,} pairs; dropped {dropped}."


def clean(
    pairs: Iterable[Pair],
    rules: CleaningRules,
    counts: CleaningCounts,
    seen: SeenPairs | None = None,
    language: str = "",
) -> Iterator[Pair]:
    """The pairs worth learning from, unchanged and in order; `counts` is up to date whenever a pair is given out.

    To find duplicates across corpora, give the same `seen` for each. Where one model learns several target languages,
    name the `language`: the same text may be right in two of them.

    Memory does not grow with the corpus: duplicates are found with a table of 64 MiB. It takes a new pair for a
    duplicate once in 500,000 times after 5 million pairs (2 pairs lost on the way), and once in 100 after 50 million.
    """
    if seen is None:
        seen = SeenPairs()
    for pair in pairs:
        counts.read += 1
        if not (pair.source.strip() and pair.target.strip()):
            counts.empty += 1
            continue
        words = count_words(pair.source), count_words(pair.target)
        shorter, longer = min(words), max(words)
        if longer > rules.max_words or max(len(pair.source), len(pair.target)) > rules.max_characters:
            counts.too_long += 1
        elif longer > rules.max_ratio * shorter + RATIO_SLACK:
            counts.ratio += 1
        elif rules.duplicates and not seen.add(pair, language):
            counts.duplicate += 1
        else:
            counts.kept += 1
            yield pair


def count_words(text: str) -> int:
    """Words between spaces, and for scripts without spaces a word for every two characters."""
    words = len(text.split())
    return words if text.isascii() else words + len(UNSPACED.findall(text)) // 2


class SeenPairs:
    """A Bloom filter: four bits of a fixed table stand for each pair.

    It never forgets a pair. After n pairs it mistakes a new one for an old one with probability (1 − e^(−4n/m))⁴,
    m being the bits of the table.
    """

    def __init__(self, log2_bits: int = 29) -> None:
        self.mask = (1 << log2_bits) - 1
        self.table = bytearray(1 << (log2_bits - 3))

    def add(self, pair: Pair, language: str = "") -> bool:
        """Remember the pair; whether it is new."""
        # A line feed cannot occur in a line, so it keeps ("a b", "c") and ("a", "b c") apart.
        digest = blake2b(f"{pair.source}\n{pair.target}\n{language}".encode(), digest_size=16).digest()
        new = False
        for number in struct.unpack("<4I", digest):
            byte, bit = divmod(number & self.mask, 8)
            if not self.table[byte] & (1 << bit):
                self.table[byte] |= 1 << bit
                new = True
        return new
