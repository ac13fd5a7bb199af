"""Which word is which: a small dictionary, learned from what occurs together in pairs of texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

__all__ = ["WORD", "learn_lexicon"]

WORD = re.compile(r"\w[\w'’-]*\w|\w")
"""A word as it stands in a text, without the punctuation around it."""
OFTEN = 5
"""Pairs in which two words must occur together."""
SURE = 0.4
"""Dice coefficient from which two words that prefer each other are taken for translations of each other."""


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
    forth: dict[str, tuple[float, str]] = {}
    back: dict[str, tuple[float, str]] = {}
    for (s, t), count in together.items():
        if count < OFTEN:
            continue
        dislike = -2 * count / (sources[s] + targets[t])
        # Of equals the first in the alphabet: the order of a set, and of the counts, is another one in each process.
        forth[s] = min((dislike, t), forth.get(s, (0.0, "")))
        back[t] = min((dislike, s), back.get(t, (0.0, "")))
    return {s: t for s, (dislike, t) in sorted(forth.items()) if -dislike >= SURE and back[t][1] == s}


def words_of(text: str) -> set[str]:
    """The words of a text, in lower case."""
    return {word.lower() for word in WORD.findall(text)}
