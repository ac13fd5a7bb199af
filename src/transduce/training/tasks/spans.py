"""Span corruption, as T5 learns from plain text: spans are cut out, and what was cut out is to be written."""

from __future__ import annotations

import math
from itertools import pairwise

import numpy as np

from transduce.data.batches import Indices
from transduce.data.shards import Ids, Pairs
from transduce.model import Transformer
from transduce.model.workers import Workers
from transduce.text import Vocabularies
from transduce.text.tokenizer import BOS, EOS
from transduce.training.ranks import ALONE, Ranks
from transduce.training.recipe import Recipe
from transduce.training.task import Validation, tensor
from transduce.training.tasks.translation import DevSet, TranslationBatch, TranslationTask, dev_batches

__all__ = ["SPANS", "SpanCorruptionTask", "corrupted"]

SPANS = tuple(f"<span{number}>" for number in range(32))
"""Tags that mark in the source where a span was, and in the target which one follows."""


def corrupted(ids: Ids, marks: list[int], share: float, mean: float, generator: np.random.Generator) -> tuple[Ids, Ids]:
    """What is left of a text, a mark in place of each span, and the spans, each behind its mark.

    About `share` of the tokens are cut out, in spans of `mean` length on average, none beside another.
    """
    length = len(ids)
    cut = min(max(1, round(length * share)), max(1, length - 1))
    count = max(1, min(round(cut / mean), len(marks), length - cut, cut))
    spans = _parts(cut, count, generator)
    kept = _parts(length - cut + 1, count + 1, generator) if length > cut else [1] + [0] * count
    kept[0] -= 1  # a text may begin with a span, but between two there is something
    source: list[int] = []
    target: list[int] = []
    place = 0
    for mark, before, span in zip(marks, kept, spans, strict=False):
        source += [*ids[place : place + before].tolist(), mark]
        place += before
        target += [mark, *ids[place : place + span].tolist()]
        place += span
    source += ids[place:].tolist()
    return np.array(source, dtype=np.uint32), np.array(target, dtype=np.uint32)


def _parts(total: int, count: int, generator: np.random.Generator) -> list[int]:
    """`total` as a sum of so many numbers of at least one, all such sums being equally likely."""
    count = min(count, total)
    places = sorted(generator.choice(total - 1, count - 1, replace=False) + 1) if count > 1 else []
    return [int(after) - int(before) for before, after in pairwise([0, *places, total])]


class SpanCorruptionTask(TranslationTask):
    """Learns to write what was cut out of texts: the loss of translation, on pairs that are made on the way."""

    def __init__(
        self,
        model: Transformer,
        vocabularies: Vocabularies,
        train: Pairs,
        dev: Pairs,
        recipe: Recipe,
        workers: Workers | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(model, vocabularies, train, DevSet(dev, [], []), recipe, workers, ranks)
        self._marks = [vocabularies.source.tag(name) for name in SPANS]

    def validate(self) -> Validation:
        """How probable the cut-out spans of the dev set are: the same ones in every validation."""
        plan = dev_batches(self.dev.pairs, self.module.config.d_model, self.device)
        parts = list(self.ranks.map(self.workers, self._likelihood, plan))
        loss = sum(nll for nll, _ in parts) / max(1, sum(tokens for _, tokens in parts))
        return Validation({"loss": loss, "perplexity": math.exp(min(50.0, loss))}, -loss, [])

    def _batch(self, pairs: Pairs, indices: Indices, sampled: tuple[int, ...] | None) -> TranslationBatch:
        seed = (self.recipe.training.seed, *sampled) if sampled is not None else (0, int(indices[0]))
        generator, settings = np.random.default_rng(seed), self.recipe.objective
        rows = [
            corrupted(pairs.ids("source", int(index)), self._marks, settings.corrupted, settings.span, generator)
            for index in indices
        ]
        return TranslationBatch(
            tensor(self.device, [np.append(source, EOS) for source, _ in rows]),
            tensor(self.device, [np.insert(target, 0, BOS) for _, target in rows]),
            tensor(self.device, [np.append(target, EOS) for _, target in rows]),
        )
