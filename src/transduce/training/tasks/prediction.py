"""Naming things as a task: the next token, a masked one, the label of a text, a word or a picture."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple, Protocol

import torch
from torch import Tensor, nn

from transduce.data.batches import Indices
from transduce.data.prefetch import prefetched
from transduce.model.workers import Workers
from transduce.text.tokenizer import PAD
from transduce.training.events import Sample
from transduce.training.loss import LossSum, regularised_loss
from transduce.training.ranks import ALONE, Ranks
from transduce.training.recipe import Recipe
from transduce.training.schedule import learning_rate
from transduce.training.task import Validation, precision
from transduce.training.tasks.translation import with_unknowns

__all__ = ["IGNORED", "Examples", "Labelled", "Measured", "PredictionTask"]

IGNORED = -1
"""A label where nothing is asked."""


class Labelled(NamedTuple):
    """What is read, ids [B,S] or pictures [B,C,height,width], and what should be said of it, [B,S] or [B,1]."""

    inputs: Tensor
    labels: Tensor


class Measured(NamedTuple):
    """Of a set of examples."""

    loss: float
    """Negative log-likelihood of what should be said, each."""
    right: int
    asked: int


class Examples(Protocol):
    """Where batches come from."""

    def plan(self, epoch: int) -> Iterator[Indices]:
        """Which examples go together, batch by batch; the same each time it is asked for."""

    def batch(self, indices: Indices, drawn: tuple[int, ...] | None) -> Labelled:
        """Some examples; `drawn` seeds what is drawn at random: epoch and number of the batch, rank."""


class PredictionTask:
    """Learns to name things. The module has `hidden`, which gives vectors, and `projection`, which names them."""

    def __init__(
        self,
        module: Any,
        recipe: Recipe,
        train: Examples,
        dev: Examples,
        workers: Workers | None = None,
        samples: Callable[[], list[Sample]] = list,
        ranks: Ranks = ALONE,
    ) -> None:
        self.module: nn.Module = module
        self._network, self.recipe, self.train, self.dev = module, recipe, train, dev
        self.workers, self._samples, self.ranks = workers or Workers(), samples, ranks
        self._hidden = torch.compile(module.hidden, dynamic=True) if recipe.training.compile else module.hidden

    def batches(self, epoch: int, start: int) -> Iterator[Labelled | None]:
        """An epoch's batches from number `start` on, made in the background while the model computes."""
        shares = self.ranks.shares(self.train.plan(epoch), epoch, start)
        return prefetched(self.train.batch(rows, drawn) if len(rows) else None for rows, drawn in shares)

    def loss(self, batch: Labelled, r_drop: float = 0.0) -> LossSum:
        """Label-smoothed cross-entropy, summed over what is asked, and R-Drop of this weight."""
        settings, training = self.recipe.training, self.module.training
        inputs = batch.inputs
        if settings.word_dropout and training and inputs.dim() == 2:
            inputs = with_unknowns(inputs, settings.word_dropout)

        def forward() -> Tensor:
            with precision(inputs.device):
                hidden: Tensor = self._hidden(inputs)
            return hidden

        sampled = settings.sampled_softmax if training else 0
        projection = self._network.projection
        return regularised_loss(forward, projection, batch.labels, IGNORED, settings.label_smoothing, r_drop, sampled)

    def size(self, batch: Labelled) -> int:
        """Numbers in a layer's output: tokens or patches, padding included, times their width."""
        config = self._network.config
        if batch.inputs.dim() == 2:
            return batch.inputs.numel() * int(config.d_model)
        return int(len(batch.inputs) * (math.prod(config.grid) + 1) * config.d_model)

    def split(self, batch: Labelled, parts: int) -> list[Labelled]:
        """A batch as some of fewer rows, each without the padding that it does not need."""
        rows = -(-len(batch.inputs) // parts)
        groups = [Labelled(*(side[start : start + rows] for side in batch)) for start in range(0, len(batch[0]), rows)]
        return [_trimmed(group) for group in groups]

    def rate(self, step: int) -> float:
        """The learning rate of the recipe's schedule."""
        return learning_rate(self.recipe, step, self._network.config.d_model)

    def validate(self) -> Validation:
        """Loss on the dev set; accuracy where labels are told apart, perplexity where tokens are."""
        measured = self.measure()
        loss = measured.loss
        if self.recipe.metric == "accuracy" or self.recipe.task not in ("language-model", "masked-language-model"):
            scores = {"accuracy": 100 * measured.right / max(1, measured.asked), "loss": loss}
        else:
            scores = {"loss": loss, "perplexity": math.exp(min(50.0, loss))}
        decisive = -loss if self.recipe.metric == "loss" else scores["accuracy"] - min(loss, 1e3) * 1e-6
        return Validation(scores, decisive, self._samples())

    def measure(self, advance: Callable[[int], None] = lambda examples: None) -> Measured:
        """What is right on the dev set, and how probable that was; `advance` hears how many examples are done."""
        plan, parts = list(self.dev.plan(0)), []
        for indices, part in zip(plan, self.ranks.map(self.workers, self._measured, plan), strict=True):
            parts.append(part)
            advance(len(indices))
        nll, right, asked = (sum(part[place] for part in parts) for place in range(3))
        return Measured(nll / max(1, asked), int(right), int(asked))

    def _measured(self, indices: Indices) -> tuple[float, int, int]:
        """Of some examples of the dev set: negative log-likelihood, how many are right, how many there are."""
        with torch.inference_mode():
            inputs, labels = self.dev.batch(indices, None)
            with precision(inputs.device):
                hidden = self._network.hidden(inputs)
            asked = labels != IGNORED
            logits, wanted = self._network.project(hidden[asked]).float(), labels[asked]
            nll = torch.nn.functional.cross_entropy(logits, wanted, reduction="sum")
            return float(nll), int((logits.argmax(-1) == wanted).sum()), len(wanted)


def _trimmed(batch: Labelled) -> Labelled:
    if batch.inputs.dim() != 2:
        return batch
    real = (batch.inputs != PAD).any(0)
    if bool(real.all()):
        return batch
    labels = batch.labels[:, real] if batch.labels.size(1) == batch.inputs.size(1) else batch.labels
    return Labelled(batch.inputs[:, real], labels)
