"""Texts on their way through an engine, round by round: what is found wanting is decoded again."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

from transduce.confidence import Signs
from transduce.guards.draft import Assembly, Draft, Manner
from transduce.guards.slots import masked
from transduce.ranking import Candidates, Ranking
from transduce.text import Vocabularies, normalise
from transduce.translation import Translation

if TYPE_CHECKING:
    from transduce.decoding import DecodingOptions, Hypothesis
    from transduce.guards.guard import Guard

__all__ = ["Batch", "Sentences"]


class Batch(NamedTuple):
    """What is decoded in the same manner."""

    sources: list[list[int]]
    """Ids of sentences."""
    options: DecodingOptions


class Found(NamedTuple):
    """What was decoded of a sentence: hypotheses and their texts, best first."""

    draft: Draft
    hypotheses: list[Hypothesis]
    texts: list[str]


class Sentences:
    """The sentences of some texts on their way through an engine.

    >>> while batches := sentences.wanted():
    ...     sentences.take([engine.decode(*batch) for batch in batches])
    >>> sentences.translations()
    """

    def __init__(
        self,
        texts: list[Assembly],
        vocabularies: Vocabularies,
        language: str | None,
        guard: Guard,
        ranking: Ranking | None = None,
    ) -> None:
        """Of `texts` as a guard has made them; with a `ranking`, candidates are put in its order."""
        self._texts, self._vocabularies, self._language, self._guard = texts, vocabularies, language, guard
        self._ranking = ranking
        self._waiting: list[list[Draft]] = []  # drafts of each batch that is wanted
        self._batches = self._ready([draft for text in texts for draft in text.drafts()])

    @property
    def start(self) -> list[int]:
        """What the decoder read before it wrote."""
        return self._vocabularies.start(self._language)

    def wanted(self) -> list[Batch]:
        """What is to be decoded next; nothing when all is done."""
        return self._batches

    def take(self, decoded: Sequence[Sequence[Sequence[Hypothesis]]]) -> None:
        """Take what was decoded: for each batch that was wanted, for each of its sources, hypotheses."""
        again: list[Draft] = []
        cut: list[Draft] = []
        for batch, drafts, results in zip(self._batches, self._waiting, decoded, strict=True):
            written = self._vocabularies.target.decode_batch(
                each.tokens for hypotheses in results for each in hypotheses
            )
            texts = iter(map(normalise, written))  # a weak model may write the byte of a line feed
            found = [
                Found(draft, list(mine), [next(texts) for _ in mine])
                for draft, mine in zip(drafts, results, strict=True)
            ]
            for draft, hypotheses, mine in self._ranked(found, batch.options.sampling):
                if self._guard.look(draft, hypotheses, mine):
                    again.append(draft)
                elif draft.pieces is not None:
                    cut.append(draft)
        pieces = [piece for draft in cut if draft.pieces is not None for piece in draft.pieces.drafts()]
        self._batches = self._ready([*again, *pieces])

    def _ranked(self, found: list[Found], sampled: bool) -> list[Found]:
        """What was found for each sentence, in the ranking's order if there is one."""
        if self._ranking is None:
            return found
        orders = self._ranking.orders(
            [
                Candidates(masked(each.draft), each.texts, [one.score for one in each.hypotheses], sampled)
                for each in found
            ]
        )
        return [
            Found(draft, [hypotheses[place] for place in order], [texts[place] for place in order])
            for (draft, hypotheses, texts), order in zip(found, orders, strict=True)
        ]

    def translations(self) -> list[Translation]:
        """The texts' translations, when nothing is wanted any more."""
        for text in self._texts:
            for item in text.items:
                if isinstance(item, Draft):
                    self._guard.join(item)
        return [text.translation() for text in self._texts]

    def decoded(self) -> list[list[tuple[list[int], list[int]]]]:
        """For each text, what its translation was made of: ids that were decoded, and what was written of them."""
        return [[(draft.ids, draft.tokens) for draft in text.drafts() if draft.tokens] for text in self._texts]

    def signs(self) -> list[list[Signs]]:
        """For each text, what the translations of its sentences can be judged by without any reference.

        Nothing where one of them had to be mended: what the others say is not said of the whole.
        """
        found = [[draft.signs for draft in text.drafts()] for text in self._texts]
        return [[each for each in mine if each is not None] if None not in mine else [] for mine in found]

    def _ready(self, drafts: list[Draft]) -> list[Batch]:
        """Batches of drafts that can be decoded, by manner; what is too long for that is cut."""
        ready: dict[Manner, list[Draft]] = {}
        while drafts:
            rows = self._vocabularies.source.encode_batch([masked(draft) for draft in drafts])
            cut: list[Draft] = []
            for draft, row in zip(drafts, rows, strict=True):
                if self._guard.ready(draft, row):
                    draft.ids = row
                    ready.setdefault(draft.manner, []).append(draft)
                elif draft.pieces is not None:
                    cut += draft.pieces.drafts()
            drafts = cut
        self._waiting = list(ready.values())
        return [self._batch(drafts) for drafts in self._waiting]

    def _batch(self, drafts: list[Draft]) -> Batch:
        options = self._guard.options(drafts[0].manner)
        if self._ranking is not None and not options.sampling:
            options = options.replace(n_best=options.beam)
        if any(draft.prefix for draft in drafts):
            options = options.replace(prefix=[draft.prefix for draft in drafts])
        elif options.prefix:
            options = options.replace(prefix=())
        sources = [draft.ids for draft in drafts]
        sources = self._vocabularies.tagged(sources, self._language)
        for draft, source in zip(drafts, sources, strict=True):
            draft.ids = source
        return Batch(sources, options)
