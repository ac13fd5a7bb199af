"""Which word is which: a small dictionary, learned from what occurs together in pairs of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from typing import NamedTuple

__all__ = ["WORD", "learn_lexicon"]

WORD = re.compile(r"\w[\w'’-]*\w|\w")
"""A word as it stands in a text, without the punctuation around it."""
OFTEN = 5
"""Pairs in which two words must occur together."""
SURE = 0.4
"""Dice coefficient from which two words that prefer each other are taken for translations of each other."""


class _Best(NamedTuple):
    """The partner that a word has preferred so far."""

    word: str
    dice: float


def learn_lexicon(pairs: Iterable[tuple[str, str]]) -> dict[str, str]:
    """Source words with the one target word that each prefers and is preferred by, both in lower case.

    Preference is Dice's coefficient 2·n(s,t) / (n(s) + n(t)), of pairs that hold the words. Words with several
    translations, or none of one word, have no entry.
    """
    sources: Counter[str] = Counter()
    targets: Counter[str] = Counter()
    together: Counter[tuple[str, str]] = Counter()
    for source, target in pairs:
        source_words, target_words = words_of(source), words_of(target)
        sources.update(source_words)
        targets.update(target_words)
        together.update((s, t) for s in source_words for t in target_words)
    forth: dict[str, _Best] = {}
    back: dict[str, _Best] = {}
    for (s, t), count in together.items():
        if count < OFTEN:
            continue
        dice = 2 * count / (sources[s] + targets[t])
        if dice > forth.get(s, _Best("", 0)).dice:
            forth[s] = _Best(t, dice)
        if dice > back.get(t, _Best("", 0)).dice:
            back[t] = _Best(s, dice)
    return {s: best.word for s, best in forth.items() if best.dice >= SURE and back[best.word].word == s}


def words_of(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return {word.lower() for word in WORD.findall(text)}
