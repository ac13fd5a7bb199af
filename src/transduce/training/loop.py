"""The training loop: batches in, updated weights out. It knows no model and no terminal.

A task says what a batch's loss is and how good the weights are; events say what happens. A run that is stopped at any
moment and started again gives, bit for bit, the weights of a run that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Generic, Protocol, TypeVar

import torch
from torch import nn

from transduce.errors import ModelError
from transduce.training.average import MovingAverage
from transduce.training.checkpoint import Checkpoint, CheckpointStore
from transduce.training.events import Event, Finished, Resumed, Sample, Saved, Skipped, Stepped, Validated
from transduce.training.loss import LossSum
from transduce.training.optimise import load_optimizer, make_optimizer, optimizer_tensors
from transduce.training.recipe import Budget, TrainingRecipe

__all__ = ["Progress", "Task", "Trainer", "Validation"]

Batch = TypeVar("Batch")

SKIPS_IN_A_ROW = 20
"""Unusable gradients after which training has diverged for good."""


@dataclass(frozen=True)
class Validation:
    """How good the weights are."""

    scores: dict[str, float]
    """By name, for people and logs."""
    decisive: float
    """The one that decides which weights are best; larger is better."""
    samples: list[Sample]


class Task(Protocol[Batch]):
    """What is learned."""

    @property
    def module(self) -> nn.Module:
        """Whose parameters are trained."""

    def batches(self, epoch: int, start: int) -> Iterator[Batch]:
        """The batches of an epoch from number `start` on; the same each time they are asked for."""

    def loss(self, batch: Batch) -> LossSum:
        """Summed over the tokens of a batch."""

    def rate(self, step: int) -> float:
        """The learning rate of a step, from 1."""

    def validate(self) -> Validation:
        """Score the module's present weights."""


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of the epoch that have been used."""
    seconds: float = 0.0
    best: float = -math.inf
    best_step: int = 0
    waiting: int = 0
    """Validations since the best one."""
    skips: int = 0
    """Unusable gradients in a row."""


class Trainer(Generic[Batch]):
    """Trains a task until its budget is spent, it no longer improves, or someone asks it to stop."""

    def __init__(
        self,
        task: Task[Batch],
        recipe: TrainingRecipe,
        budget: Budget,
        directory: Path,
        emit: Callable[[Event], None],
        should_stop: Callable[[], bool] = lambda: False,
    ) -> None:
        self.task, self.recipe, self.budget = task, recipe, budget
        self.emit, self.should_stop = emit, should_stop
        self.checkpoints = CheckpointStore(directory / "checkpoints")
        self.best = self.best_store(directory)
        self.progress = Progress()
        self.optimizer = make_optimizer(task.module, recipe)
        self.average = MovingAverage(task.module, recipe.average_decay)

    @staticmethod
    def best_store(directory: Path) -> CheckpointStore:
        """Where a run keeps the averaged weights that validated best."""
        return CheckpointStore(directory / "best", keep=1)

    def run(self) -> Finished:
        """Train from the newest checkpoint, or from the start; the best weights are in `best` afterwards."""
        torch.manual_seed(self.recipe.seed)
        self._resume()
        finished = self._reason_to_stop()
        while finished is None:
            finished = self._epoch()
        if finished.complete and self.progress.best_step == 0:
            self._validate()  # a run too short for a validation still ends with weights and a score
        self._save()
        self.emit(finished)
        return finished

    def _epoch(self) -> Finished | None:
        """Use the batches of an epoch that have not been used; None if there is more to do."""
        progress = self.progress
        batches = self.task.batches(progress.epoch, progress.batch)
        while group := list(islice(batches, self.recipe.accumulate)):
            self._step(group)
            if progress.step % self.recipe.validate_every == 0:
                self._validate()
            if progress.step % self.recipe.checkpoint_every == 0:
                self._save()
            if (finished := self._reason_to_stop()) is not None:
                return finished
        progress.epoch, progress.batch = progress.epoch + 1, 0
        return self._reason_to_stop()

    def _step(self, group: list[Batch]) -> None:
        """Add up the gradients of a group of batches, divide by its tokens, update the weights once."""
        progress, start = self.progress, time.perf_counter()
        self.task.module.train()
        self.optimizer.zero_grad()
        loss = nll = 0.0
        tokens = 0
        for batch in group:
            part = self.task.loss(batch)
            part.loss.backward()  # type: ignore[no-untyped-call]
            loss, nll, tokens = loss + part.loss.item(), nll + part.nll.item(), tokens + part.tokens
        gradients = [p.grad for p in self.task.module.parameters() if p.grad is not None]
        torch._foreach_div_(gradients, tokens)
        norm = float(torch.nn.utils.get_total_norm(gradients))
        progress.step, progress.batch = progress.step + 1, progress.batch + len(group)
        rate = self.task.rate(progress.step)
        if math.isfinite(norm):
            if self.recipe.clip and norm > self.recipe.clip:
                torch._foreach_mul_(gradients, self.recipe.clip / norm)
            for parameters in self.optimizer.param_groups:
                parameters["lr"] = rate
            self.optimizer.step()
            self.average.update(self.task.module)
            progress.skips = 0
        else:
            self._skip("its gradient is not a finite number")
        progress.seconds += time.perf_counter() - start
        perplexity = math.exp(min(50.0, nll / tokens))
        self.emit(
            Stepped(progress.step, progress.epoch, loss / tokens, perplexity, rate, norm, tokens, progress.seconds)
        )

    def _skip(self, reason: str) -> None:
        self.progress.skips += 1
        self.emit(Skipped(self.progress.step, reason))
        if self.progress.skips >= SKIPS_IN_A_ROW:
            raise ModelError(
                f"training has diverged: {SKIPS_IN_A_ROW} steps in a row had no usable gradient.",
                where=f"step {self.progress.step}",
                remedy="Lower training.rate, raise training.warmup or set training.clip=1.",
            )

    def _validate(self) -> None:
        progress, start = self.progress, time.perf_counter()
        self.average.swap(self.task.module)
        self.task.module.eval()
        validation = self.task.validate()
        better = validation.decisive > progress.best
        if better:
            progress.best, progress.best_step, progress.waiting = validation.decisive, progress.step, 0
            weights = {name: value.detach() for name, value in self.task.module.named_parameters()}
            self.best.save(Checkpoint(progress.step, weights, {"scores": validation.scores}))
        else:
            progress.waiting += 1
        self.average.swap(self.task.module)
        progress.seconds += time.perf_counter() - start
        self.emit(Validated(progress.step, progress.seconds, validation.scores, better, validation.samples))

    def _reason_to_stop(self) -> Finished | None:
        progress, budget = self.progress, self.budget
        reason = None
        if budget.steps is not None and progress.step >= budget.steps:
            reason = f"{progress.step:,} steps done"
        elif budget.epochs is not None and progress.epoch >= budget.epochs:
            reason = f"{progress.epoch} epochs done"
        elif budget.minutes is not None and progress.seconds >= 60 * budget.minutes:
            reason = f"{budget.minutes:g} minutes are over"
        elif self.recipe.patience and progress.waiting >= self.recipe.patience:
            reason = f"no better score in {progress.waiting} validations"
        if reason is not None:
            return Finished(progress.step, reason, complete=True)
        return Finished(progress.step, "stopped; run the same command to go on", False) if self.should_stop() else None

    def _save(self) -> None:
        tensors = {f"model.{name}": value.detach() for name, value in self.task.module.named_parameters()}
        tensors |= {f"average.{name}": value for name, value in self.average.values.items()}
        tensors |= {f"optimizer.{name}": value for name, value in optimizer_tensors(self.optimizer).items()}
        tensors["random"] = torch.get_rng_state()  # of dropout; what else is random comes from seeds and counters
        if torch.cuda.is_available():
            tensors["random_cuda"] = torch.cuda.get_rng_state()
        values = asdict(self.progress) | {"average_updates": self.average.updates}
        self.checkpoints.save(Checkpoint(self.progress.step, tensors, values))
        self.emit(Saved(self.progress.step))

    @torch.no_grad()
    def _resume(self) -> None:
        checkpoint, damaged = self.checkpoints.load_newest()
        if checkpoint is None:
            return
        tensors, values = checkpoint.tensors, dict(checkpoint.values)
        self.average.updates = values.pop("average_updates")
        self.progress = Progress(**values)
        for name, parameter in self.task.module.named_parameters():
            parameter.copy_(tensors[f"model.{name}"])
            self.average.values[name].copy_(tensors[f"average.{name}"])
        prefix = "optimizer."
        load_optimizer(self.optimizer, {k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)})
        torch.set_rng_state(tensors["random"])
        if "random_cuda" in tensors and torch.cuda.is_available():
            torch.cuda.set_rng_state(tensors["random_cuda"])
        self.emit(Resumed(self.progress.step, [str(path) for path in damaged]))
