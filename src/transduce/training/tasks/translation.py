"""Translation as a task: batches of pairs, the loss of the paper, BLEU on the dev set."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from transduce.data.batches import BatchPlan, padded
from transduce.data.prefetch import prefetched
from transduce.data.shards import Ids, Pairs
from transduce.decoding import DecodingOptions, decode
from transduce.evaluation import quick_bleu, quick_chrf
from transduce.model import Transformer
from transduce.text import Tokenizer
from transduce.text.tokenizer import BOS, EOS, PAD, UNKNOWN
from transduce.training.events import Sample
from transduce.training.loop import Validation
from transduce.training.loss import LossSum, agreement, smoothed_cross_entropy
from transduce.training.recipe import Recipe
from transduce.training.schedule import cosine, inverse_sqrt, noam

__all__ = ["DevSet", "TranslationBatch", "TranslationTask"]

DECODE_TOKENS = 4000
"""Source tokens that are decoded at once in validation."""
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


class TranslationTask:
    """Learns to translate prepared pairs."""

    def __init__(self, model: Transformer, tokenizer: Tokenizer, train: Pairs, dev: DevSet, recipe: Recipe) -> None:
        self.module = model
        self.tokenizer, self.recipe = tokenizer, recipe
        self.train, self.dev = train, dev
        self.device = next(model.parameters()).device
        self.plan = BatchPlan(train, recipe.training.batch_tokens, recipe.training.seed)

    def batches(self, epoch: int, start: int) -> Iterator[TranslationBatch]:
        """An epoch's batches from number `start` on, made in the background while the model computes."""
        plan = enumerate(self.plan.epoch(epoch))
        return prefetched(self._batch(self.train, row, (epoch, number)) for number, row in plan if number >= start)

    def loss(self, batch: TranslationBatch) -> LossSum:
        """Label-smoothed cross-entropy, summed over the target tokens."""
        settings, weight = self.recipe.training, self.module.projection.weight
        source = self._with_unknowns(batch.source) if settings.word_dropout and self.module.training else batch.source
        with self._precision():
            hidden = self.module.hidden(source, batch.target)
            other = self.module.hidden(source, batch.target) if settings.r_drop and self.module.training else None
        part = smoothed_cross_entropy(hidden.float(), weight, batch.labels, PAD, settings.label_smoothing)
        if other is None:
            return part
        second = smoothed_cross_entropy(other.float(), weight, batch.labels, PAD, settings.label_smoothing)
        apart = agreement(hidden.float(), other.float(), weight, batch.labels, PAD)
        return LossSum((part.loss + second.loss) / 2 + settings.r_drop * apart, part.nll, part.tokens)

    def rate(self, step: int) -> float:
        """The learning rate of the recipe's schedule."""
        settings = self.recipe.training
        if settings.schedule == "noam":
            return settings.rate * noam(step, self.module.config.d_model, settings.warmup)
        if settings.schedule == "inverse_sqrt":
            return inverse_sqrt(step, settings.rate, settings.warmup)
        return cosine(step, settings.rate, settings.warmup, total=self.recipe.budget.steps or 100_000)

    def validate(self) -> Validation:
        """Perplexity of the dev set, and BLEU and chrF of its greedy translation."""
        nll = tokens = 0.0
        with torch.inference_mode():
            for indices in BatchPlan(self.dev.pairs, DECODE_TOKENS, shuffle=False).epoch(0):
                part = self.loss(self._batch(self.dev.pairs, indices, None))
                nll, tokens = nll + float(part.nll), tokens + part.tokens
        translations = self._translated()
        references = list(self.dev.references)
        bleu, chrf = quick_bleu(translations, references), quick_chrf(translations, references)
        scores = {"bleu": bleu, "chrf": chrf, "loss": nll / tokens, "perplexity": math.exp(min(50.0, nll / tokens))}
        decisive = -scores["loss"] if self.recipe.training.metric == "loss" else scores[self.recipe.training.metric]
        if self.recipe.training.metric == "bleu" and bleu < 1:
            decisive = -scores["loss"]  # early on BLEU is zero for all weights alike; likelihood tells them apart
        shown = list(zip(self.dev.sources, translations, references, strict=True))[:SAMPLES]
        return Validation(scores, decisive, [Sample(*texts) for texts in shown])

    def _with_unknowns(self, source: Tensor) -> Tensor:
        """Word dropout: some source tokens become the unknown one."""
        dropped = torch.rand(source.shape, device=source.device) < self.recipe.training.word_dropout
        return source.masked_fill(dropped & (source > UNKNOWN), UNKNOWN)

    def _precision(self) -> torch.autocast:
        """bfloat16 on GPUs that have it (untested on a GPU so far); on CPUs it is far slower than float32."""
        fits = self.device.type == "cuda" and torch.cuda.is_bf16_supported()
        return torch.autocast(self.device.type, torch.bfloat16, enabled=fits)

    def _translated(self) -> list[str]:
        """Greedy translations of the dev set, in its order."""
        translations = [""] * len(self.dev.pairs)
        options = DecodingOptions(beam=1, suppress=(PAD, BOS, UNKNOWN))
        for indices in BatchPlan(self.dev.pairs, DECODE_TOKENS, shuffle=False).epoch(0):
            source = self._batch(self.dev.pairs, indices, None).source
            for index, (best, *_) in zip(indices, decode(self.module, source, options), strict=True):
                translations[index] = self.tokenizer.decode(best.tokens)
        return translations

    def _batch(self, pairs: Pairs, indices: np.ndarray, sampled: tuple[int, int] | None) -> TranslationBatch:
        """The pairs as tensors; `sampled` is the epoch and number that seed BPE-dropout."""
        sources, targets = ([pairs.ids(side, int(index)) for index in indices] for side in ("source", "target"))
        if sampled is not None and self.recipe.tokenizer.dropout:
            sources, targets = self._resegmented(sources, targets, sampled)
        start, end = np.array([BOS], dtype=np.uint32), np.array([EOS], dtype=np.uint32)
        return TranslationBatch(
            self._tensor([np.concatenate((ids, end)) for ids in sources]),
            self._tensor([np.concatenate((start, ids)) for ids in targets]),
            self._tensor([np.concatenate((ids, end)) for ids in targets]),
        )

    def _tensor(self, rows: list[Ids]) -> Tensor:
        return torch.from_numpy(padded(rows, PAD)).to(self.device)

    def _resegmented(
        self, sources: list[Ids], targets: list[Ids], sampled: tuple[int, int]
    ) -> tuple[list[Ids], list[Ids]]:
        """The same texts cut into other pieces: ids decode to their text exactly, so no text needs to be kept."""
        texts = [self.tokenizer.decode(ids) for ids in (*sources, *targets)]
        seed = int(np.random.default_rng((self.recipe.training.seed, *sampled)).integers(2**31))
        cut = self.tokenizer.encode_sampled(texts, self.recipe.tokenizer.dropout, seed)
        arrays = [np.array(ids, dtype=np.uint32) for ids in cut]
        return arrays[: len(sources)], arrays[len(sources) :]
