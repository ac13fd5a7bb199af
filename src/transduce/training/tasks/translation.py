"""Translation as a task: batches of pairs, the loss of the paper, BLEU on the dev set."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transduce.data.batches import BatchPlan, Indices
from transduce.data.prefetch import prefetched
from transduce.data.shards import Ids, Pairs
from transduce.decoding import DecodingOptions, decode
from transduce.evaluation import quick_bleu, quick_chrf
from transduce.model import Transformer
from transduce.model.dropout import dropout
from transduce.model.workers import AT_ONCE, Workers
from transduce.text import Tokenizer, Vocabularies
from transduce.text.tokenizer import BOS, EOS, PAD, UNKNOWN
from transduce.training.events import Sample
from transduce.training.loss import LossSum, regularised_loss
from transduce.training.ranks import ALONE, Ranks
from transduce.training.recipe import Recipe
from transduce.training.schedule import learning_rate
from transduce.training.task import Validation, precision, tensor

__all__ = ["DevSet", "TranslationBatch", "TranslationTask", "decoded_at_once", "dev_batches", "with_unknowns"]

SAMPLES = 3


class TranslationBatch(NamedTuple):
    """Ids [B,S] and [B,T], padded: the encoder's input, the decoder's, and what the decoder should say."""

    source: Tensor
    target: Tensor
    labels: Tensor


@dataclass(frozen=True)
class DevSet:
    """What is validated on: ids for the loss, texts for BLEU."""

    pairs: Pairs
    sources: Sequence[str]
    references: Sequence[str]


def decoded_at_once(width: int, on_cpu: bool = True) -> int:
    """Positions, read and written, that a batch of the dev set may come to while it is decoded.

    On a CPU, keys and values of so many take less memory than training takes for a batch's part, even if the model
    writes as much as it may, as it does at first. A GPU is faster with larger batches (untested).
    """
    return max(1, (3 if on_cpu else 48) * AT_ONCE // width)


def dev_batches(pairs: Pairs, width: int, device: torch.device) -> list[Indices]:
    """Batches in which a model of such a width decodes the dev set."""
    options = DecodingOptions()
    times = 1 + options.max_length_ratio  # a token that is read, and those that may be written for it
    tokens = max(1, int(decoded_at_once(width, device.type == "cpu") / times))
    return list(BatchPlan(pairs, tokens, shuffle=False, extra=math.ceil(options.max_length_extra / times)).epoch(0))


class TranslationTask:
    """Learns to translate prepared pairs."""

    def __init__(
        self,
        model: Transformer,
        vocabularies: Vocabularies,
        train: Pairs,
        dev: DevSet,
        recipe: Recipe,
        workers: Workers | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        self.module = model
        self.vocabularies, self.recipe = vocabularies, recipe
        self.train, self.dev = train, dev
        self.workers, self.ranks = workers or Workers(), ranks
        self.device = next(model.parameters()).device
        self._hidden = torch.compile(model.hidden, dynamic=True) if recipe.training.compile else model.hidden
        self.plan = BatchPlan(train, recipe.training.batch_tokens, recipe.training.seed)

    def batches(self, epoch: int, start: int) -> Iterator[TranslationBatch | None]:
        """An epoch's batches from number `start` on, made in the background while the model computes."""
        shares = self.ranks.shares(self.plan.epoch(epoch), epoch, start)
        return prefetched(self._batch(self.train, rows, drawn) if len(rows) else None for rows, drawn in shares)

    def loss(self, batch: TranslationBatch, r_drop: float = 0.0) -> LossSum:
        """Label-smoothed cross-entropy, summed over the target tokens, and R-Drop of this weight."""
        settings, training = self.recipe.training, self.module.training
        source = batch.source
        if settings.word_dropout and training:
            source = with_unknowns(source, settings.word_dropout, keep=self._tags)

        def forward() -> Tensor:
            with precision(self.device):
                hidden: Tensor = self._hidden(source, batch.target)
            return hidden

        sampled = settings.sampled_softmax if training else 0
        projection = self.module.projection
        return regularised_loss(forward, projection, batch.labels, PAD, settings.label_smoothing, r_drop, sampled)

    def size(self, batch: TranslationBatch) -> int:
        """Numbers in a layer's output: tokens of both sides, padding included, times their width."""
        return (batch.source.numel() + batch.target.numel()) * self.module.config.d_model

    def split(self, batch: TranslationBatch, parts: int) -> list[TranslationBatch]:
        """A batch as some of fewer pairs, each without the padding that it does not need."""
        rows = -(-len(batch.source) // parts)
        starts = range(0, len(batch.source), rows)
        groups = ([side[start : start + rows] for side in batch] for start in starts)
        return [TranslationBatch(*(side[:, (side != PAD).any(0)] for side in group)) for group in groups]

    def rate(self, step: int) -> float:
        """The learning rate of the recipe's schedule."""
        return learning_rate(self.recipe, step, self.module.config.d_model)

    def validate(self) -> Validation:
        """Perplexity of the dev set, and BLEU and chrF of its greedy translation."""
        plan = dev_batches(self.dev.pairs, self.module.config.d_model, self.device)
        parts = list(self.ranks.map(self.workers, self._likelihood, plan))
        loss = sum(nll for nll, _ in parts) / sum(tokens for _, tokens in parts)
        translations = [""] * len(self.dev.pairs)
        for indices, texts in zip(plan, self.ranks.map(self.workers, self._translated, plan), strict=True):
            for index, text in zip(indices, texts, strict=True):
                translations[index] = text
        references = list(self.dev.references)
        bleu, chrf = quick_bleu(translations, references), quick_chrf(translations, references)
        scores = {"bleu": bleu, "chrf": chrf, "loss": loss, "perplexity": math.exp(min(50.0, loss))}
        metric = self.recipe.metric
        decisive = -scores["loss"] if metric == "loss" else scores[metric]
        if metric == "bleu" and bleu < 1:
            decisive = -scores["loss"]  # early on BLEU is zero for all weights alike; likelihood tells them apart
        shown = list(zip(self.dev.sources, translations, references, strict=True))[:SAMPLES]
        return Validation(scores, decisive, [Sample(*texts) for texts in shown])

    def _likelihood(self, indices: Indices) -> tuple[float, int]:
        """Negative log-likelihood of some pairs of the dev set, and their tokens."""
        with torch.inference_mode():
            part = self.loss(self._batch(self.dev.pairs, indices, None))
            return float(part.nll), part.tokens

    def _translated(self, indices: Indices) -> list[str]:
        """Greedy translations of some pairs of the dev set."""
        options = DecodingOptions(beam=1, suppress=self.vocabularies.target.unwritten)
        if length := len(self.vocabularies.start()):
            first = [self.dev.pairs.ids("target", int(index))[:length].tolist() for index in indices]
            options = options.replace(prefix=first)
        source = self._batch(self.dev.pairs, indices, None).source
        return [self.vocabularies.target.decode(best.tokens) for best, *_ in decode(self.module, source, options)]

    def _batch(self, pairs: Pairs, indices: Indices, sampled: tuple[int, ...] | None) -> TranslationBatch:
        """The pairs as tensors; `sampled` is what seeds BPE-dropout: epoch, number, rank."""
        sources, targets = ([pairs.ids(side, int(index)) for index in indices] for side in ("source", "target"))
        if sampled is not None and self.recipe.tokenizer.dropout:
            sources, targets = self._resegmented(sources, targets, sampled)
        start, end = np.array([BOS], dtype=np.uint32), np.array([EOS], dtype=np.uint32)
        return TranslationBatch(
            tensor(self.device, [np.concatenate((ids, end)) for ids in sources]),
            tensor(self.device, [np.concatenate((start, ids)) for ids in targets]),
            tensor(self.device, [np.concatenate((ids, end)) for ids in targets]),
        )

    def _resegmented(
        self, sources: list[Ids], targets: list[Ids], sampled: tuple[int, ...]
    ) -> tuple[list[Ids], list[Ids]]:
        """The same texts cut into other pieces: ids decode to their text exactly, so no text needs to be kept."""
        generator = random.Random(int(np.random.default_rng((self.recipe.training.seed, *sampled)).integers(2**31)))

        def cut(tokenizer: Tokenizer, rows: list[Ids], tags: int) -> list[Ids]:
            texts = [tokenizer.decode(ids[tags:]) for ids in rows]
            new = tokenizer.encode_sampled(texts, self.recipe.tokenizer.dropout, generator)
            return [np.array([*ids[:tags], *pieces], dtype=np.uint32) for ids, pieces in zip(rows, new, strict=True)]

        return cut(self.vocabularies.source, sources, self._tags), cut(self.vocabularies.target, targets, 0)

    @property
    def _tags(self) -> int:
        """Ids at the start of each source that are no text but ask for a language: they are never changed."""
        if self.vocabularies.source.frame is None:
            return int(bool(self.vocabularies.languages))
        return len(self.vocabularies.around_source(None)[0])


def with_unknowns(ids: Tensor, probability: float, keep: int = 0) -> Tensor:
    """Word dropout: some tokens become the unknown one, but for the first `keep`, which are tags."""
    dropped = dropout(torch.ones(ids.shape, device=ids.device), probability) == 0
    dropped[:, :keep] = False
    return ids.masked_fill(dropped & (ids > UNKNOWN), UNKNOWN)
