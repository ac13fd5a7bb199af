"""One run: a network trained from a seed, scored on the way by step and by CPU time."""

from __future__ import annotations

import math
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from claims.cases import Case
from transduce.data.prepare import Prepared
from transduce.model import RecurrentConfig, RecurrentTranslator, Transformer, TransformerConfig
from transduce.model.workers import AT_ONCE, Workers
from transduce.training.allocator import freed_memory_kept
from transduce.training.average import carrying
from transduce.training.events import Event, Stepped
from transduce.training.loop import Trainer
from transduce.training.recipe import Recipe
from transduce.training.tasks.translation import DevSet, TranslationTask

__all__ = ["Run", "network"]

NEVER = 10**9


def network(case: Case, vocab_size: int) -> Transformer | RecurrentTranslator:
    """The untrained network of a case."""
    if case.network == "recurrent":
        return RecurrentTranslator(RecurrentConfig(vocab_size=vocab_size, **case.model))
    return Transformer(TransformerConfig.tiny(vocab_size, **case.model))


class Run:
    """Trains a case from a seed until so many steps are made and so many seconds of CPU time are spent.

    Only training is counted, and as CPU time of the process: another's work on the same machine then counts little.
    What is scored is what would become the model: a moving average of the weights, decoded greedily.
    """

    def __init__(self, case: Case, seed: int, prepared: Prepared, steps: int, seconds: float, points: int) -> None:
        self.case, self.seed, self.prepared = case, seed, prepared
        self.steps, self.least, self.points = steps, seconds, points
        self.curve: list[dict[str, float]] = []
        self.seconds = 0.0
        self._clock = 0.0

    def train(self) -> dict[str, Any]:
        """The result: what was run, and its scores on the way."""
        torch.manual_seed(self.seed)
        model = network(self.case, self.prepared.vocabularies.source.size)
        recipe = Recipe.of({"training": self.case.training | {"validate_every": NEVER, "seed": self.seed}})
        dev = DevSet(self.prepared.dev, self.prepared.dev_sources, self.prepared.dev_references)
        self.task = TranslationTask(model, self.prepared.vocabularies, self.prepared.train, dev, recipe)  # type: ignore[arg-type]
        workers = Workers(1, AT_ONCE)
        with TemporaryDirectory() as directory, freed_memory_kept(), workers:
            self.trainer = Trainer(
                self.task, recipe.training, recipe.budget, Path(directory), self._heard, self._is_done, workers
            )
            self._clock = time.process_time()
            self.trainer.run()
        parameters = sum(parameter.numel() for parameter in model.parameters())
        return {"case": self.case.name, "seed": self.seed, "parameters": parameters, "curve": self.curve}

    def _is_done(self) -> bool:
        return self.trainer.progress.step >= self.steps and self.seconds >= self.least

    def _heard(self, event: Event) -> None:
        if not isinstance(event, Stepped):
            return
        before, self.seconds = self.seconds, self.seconds + time.process_time() - self._clock
        if self._is_due(event.step, before) or self._is_done():
            self._score(event)
        self._clock = time.process_time()

    def _is_due(self, step: int, before: float) -> bool:
        """At equal shares of the steps, or else of the time; and where one of the two ends."""
        if self.steps and step <= self.steps and step % max(1, self.steps // self.points) == 0:
            return True
        parts = 1 if self.steps else self.points
        return self.least > 0 and int(parts * before / self.least) < int(parts * self.seconds / self.least)

    def _score(self, event: Stepped) -> None:
        """Add a point to the curve; its time is not training's."""
        assert self.trainer.average is not None, "the recipe's default"
        self.task.module.eval()
        with carrying(self.task.module, self.trainer.average.values):
            scores = self.task.validate().scores
        assert math.isfinite(scores["loss"]), "a network that has diverged has no place in a table"
        point = {"step": event.step, "seconds": round(self.seconds, 1)}
        self.curve.append(point | {name: round(scores[name], 4) for name in ("bleu", "chrf", "perplexity")})
