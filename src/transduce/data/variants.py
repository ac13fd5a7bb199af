"""Pairs in another form: what people type and corpora lack, made of the corpus's own pairs.

A model that has seen only single, tidy sentences falls apart on others. So some pairs are learned in another form as
well: with slots for words (see `text.slots`), joined to longer texts, in small letters, without the final mark. (Texts
in capitals need none: they are read in small letters, see `guards.capitals`.)
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Sequence

from transduce.data.corpus import Pair
from transduce.data.lexicon import WORD
from transduce.text.slots import SLOT_SYMBOLS

__all__ = ["Variants"]

MOST_SLOTS = 3
MOST_JOINED = 3
SHORTEST = 4
"""Letters of a word that is worth a slot; names and numbers may be shorter."""
MARKS = ".!?…。！？"
WEIGHTS = (5, 3, 2)
"""How often each form is made: slots most of all, because copying them must be sure, not only likely."""
PARTNERS = 2_000
"""Earlier pairs that one may be joined with: a corpus may be sorted, and neighbours alike."""


class Variants:
    """Makes variants of pairs as they come, of about a `share` of them; the same ones each time.

    `lexicon` says which words are translations of each other and may share a slot; None is for vocabularies that
    have no slots.
    """

    def __init__(self, share: float, lexicon: dict[str, str] | None, seed: int = 0) -> None:
        self.share, self.lexicon = share, lexicon
        self._random = random.Random(seed)
        self._partners: list[Pair] = []
        self._forms: list[Callable[[Pair], Pair | None]] = [self._slotted, self._joined, self._marred]
        self._weights = WEIGHTS

    def of(self, pairs: Sequence[Pair]) -> Iterator[Pair]:
        """The variants of some of these pairs; a pair that lends itself to none has none."""
        for pair in pairs:
            self._remember(pair)
            if self._random.random() < self.share:
                form = self._random.choices(self._forms, self._weights)[0]
                if (variant := form(pair)) is not None:
                    yield variant

    def _slotted(self, pair: Pair) -> Pair | None:
        """Slots in place of words that are each other's translation, and of names and numbers that both texts hold."""
        if self.lexicon is None:
            return None
        targets: dict[str, list[str]] = {}
        for word in WORD.findall(pair.target):
            targets.setdefault(word.lower(), []).append(word)
        sources = [word.lower() for word in WORD.findall(pair.source)]
        candidates = []
        for word in dict.fromkeys(WORD.findall(pair.source)):
            partner = targets.get(self.lexicon.get(word.lower(), "" if word.islower() else word.lower()), [])
            named = not word.islower() and partner == [word]
            if len(partner) == 1 and sources.count(word.lower()) == 1 and (named or len(word) >= SHORTEST):
                candidates.append((word, partner[0]))
        if not candidates:
            return None
        count = min(len(candidates), self._random.choice(range(1, MOST_SLOTS + 1)))
        chosen = self._random.sample(candidates, count)
        symbols = self._random.sample(SLOT_SYMBOLS, count)
        source = dict(zip((word for word, _ in chosen), symbols, strict=True))
        target = dict(zip((word for _, word in chosen), symbols, strict=True))
        return Pair(_replaced(pair.source, source), _replaced(pair.target, target))

    def _joined(self, pair: Pair) -> Pair:
        """The pair before or behind others."""
        count = min(len(self._partners), self._random.choice(range(1, MOST_JOINED)))
        parts = [pair, *self._random.sample(self._partners, count)]
        self._random.shuffle(parts)
        return Pair(" ".join(part.source for part in parts), " ".join(part.target for part in parts))

    def _marred(self, pair: Pair) -> Pair | None:
        """The source in small letters; or both without their final mark."""
        if self._random.random() < 0.5:
            return Pair(pair.source.lower(), pair.target)
        if pair.source[-1:] in MARKS and pair.target[-1:] in MARKS:
            return Pair(pair.source.rstrip(MARKS), pair.target.rstrip(MARKS))
        return None

    def _remember(self, pair: Pair) -> None:
        if len(self._partners) < PARTNERS:
            self._partners.append(pair)
        else:
            self._partners[self._random.randrange(PARTNERS)] = pair


def _replaced(text: str, words: dict[str, str]) -> str:
    return WORD.sub(lambda found: words.get(found.group(), found.group()), text)
