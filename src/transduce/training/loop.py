"""The training loop: batches in, updated weights out. It knows no model and no terminal.

A task says what a batch's loss is and how good the weights are; events say what happens. A run that is stopped at any
moment and started again gives, bit for bit, the weights of a run that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Generic, TypeVar

import torch
from torch import Tensor

from transduce.errors import ModelError, StorageError
from transduce.model.workers import Workers
from transduce.training.accumulate import Accumulator, Added, is_out_of_memory
from transduce.training.average import MovingAverage, Snapshots, carrying
from transduce.training.checkpoint import Checkpoint, CheckpointStore
from transduce.training.events import (
    Averaged,
    Event,
    Finished,
    Halved,
    Resumed,
    Sample,
    Saved,
    Skipped,
    Started,
    Stepped,
    Validated,
)
from transduce.training.optimise import make_optimizer
from transduce.training.recipe import Budget, TrainingRecipe
from transduce.training.schedule import cooled
from transduce.training.spikes import SpikeGuard
from transduce.training.task import Task

__all__ = ["Progress", "Trainer"]

Batch = TypeVar("Batch")

SKIPS_IN_A_ROW = 20
"""Unusable gradients after which training has diverged for good."""


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
        workers: Workers | None = None,
    ) -> None:
        self.task, self.recipe, self.budget = task, recipe, budget
        self.emit, self.should_stop = emit, should_stop
        self.checkpoints = CheckpointStore(directory / "checkpoints")
        self.best, self.last, self.mean = self._kept_stores(directory)
        self.progress = Progress()
        self.optimizer = make_optimizer(task.module, recipe)
        self.accumulator = Accumulator(task, workers)
        self.spikes = SpikeGuard()
        self._saved: dict[str, Any] = {}
        self.average = MovingAverage(task.module, recipe.average_decay) if recipe.average == "moving" else None
        self.snapshots: Snapshots | None = None
        if recipe.average == "last" or recipe.average == "best":
            self.snapshots = Snapshots(directory / "snapshots", recipe.average, recipe.average_count)

    @staticmethod
    def _kept_stores(directory: Path) -> tuple[CheckpointStore, CheckpointStore, CheckpointStore]:
        """Where a run keeps the weights that validated best, those that it ended with, the mean of its snapshots."""
        best = CheckpointStore(directory / "best", keep=1)
        return best, CheckpointStore(directory / "last", keep=None), CheckpointStore(directory / "mean", keep=None)

    @classmethod
    def best_weights(cls, directory: Path) -> Checkpoint:
        """The weights that a complete run has found best: single ones, or the mean of some."""
        stores = cls._kept_stores(directory)
        best = _best_of(*stores)
        if best is None:
            raise StorageError(
                "the weights that validated best are missing or damaged.",
                where=str(stores[0].directory),
                remedy="Delete the directory above it and train again.",
            )
        return best

    def run(self) -> Finished:
        """Train from the newest checkpoint, or from the start; `best_weights` are there afterwards."""
        try:
            return self._run()
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
            raise ModelError(
                "memory is too small for this model.",
                where=f"step {self.progress.step}",
                remedy="Close other programs, or make it smaller, for example with model.d_model=256.",
            ) from error

    def _run(self) -> Finished:
        torch.manual_seed(self.recipe.seed)
        self._resume()
        finished = self._reason_to_stop()
        while finished is None:
            finished = self._epoch()
        if finished.complete:
            self._validate_last()
            self._average_snapshots()
        self._save()
        self.emit(finished)
        return finished

    def _epoch(self) -> Finished | None:
        """Use the batches of an epoch that have not been used; None if there is more to do."""
        progress = self.progress
        batches = self.task.batches(progress.epoch, progress.batch)
        while group := list(islice(batches, self.recipe.accumulate)):
            self.step(group)
            if progress.step % self.recipe.validate_every == 0:
                self._validate()
            if progress.step % self.recipe.checkpoint_every == 0:
                self._save()
            if (finished := self._reason_to_stop()) is not None:
                return finished
        progress.epoch, progress.batch = progress.epoch + 1, 0
        return self._reason_to_stop()

    def step(self, group: list[Batch]) -> None:
        """Add up the gradients of a group of batches, divide by its tokens, update the weights once."""
        progress, start = self.progress, time.perf_counter()
        self.task.module.train()
        self.optimizer.forget_gradients()
        progress.step, progress.batch = progress.step + 1, progress.batch + len(group)
        total = sum((self._add(batch) for batch in group), Added())
        tokens = max(1, total.tokens)  # none if no pair has fitted into memory
        gradients = [p.grad for p in self.task.module.parameters() if p.grad is not None]
        if gradients:
            torch._foreach_div_(gradients, tokens)
        norm, loss = float(torch.nn.utils.get_total_norm(gradients)), total.loss / tokens
        rate = self.task.rate(progress.step) * cooled(self._spent(), self.recipe.cooldown)
        if not total.tokens:
            self._skip("none of its pairs fits into memory", "Lower training.batch_tokens, or make the model smaller.")
        elif not math.isfinite(norm):
            self._skip(
                "its gradient is not a finite number",
                "Lower training.rate, raise training.warmup or set training.clip=1.",
            )
        elif self.recipe.skip_spikes and self.spikes.is_spike(norm, loss):
            self._skip(f"a loss spike: its gradient's norm is {norm:.3g}, its loss {loss:.3g}")
        else:
            self._update(gradients, norm, rate)
        progress.seconds += time.perf_counter() - start
        perplexity = math.exp(min(50.0, total.nll / tokens))
        self.emit(Stepped(progress.step, progress.epoch, loss, perplexity, rate, norm, total.tokens, progress.seconds))

    def _add(self, batch: Batch) -> Added:
        """Add a batch's gradient to the step's."""
        added = self.accumulator.add(batch)
        if added.failed:
            self.emit(Halved(self.progress.step, added.parts, added.left_out))
        return added

    def _update(self, gradients: list[Tensor], norm: float, rate: float) -> None:
        if self.recipe.clip and norm > self.recipe.clip:
            torch._foreach_mul_(gradients, self.recipe.clip / norm)
        self.optimizer.step(rate)
        if self.average is not None:
            self.average.update(self.task.module)
        self.progress.skips = 0

    def _skip(self, reason: str, remedy: str | None = None) -> None:
        self.progress.skips += 1
        self.emit(Skipped(self.progress.step, reason))
        if self.progress.skips >= SKIPS_IN_A_ROW:
            raise ModelError(
                f"{SKIPS_IN_A_ROW} steps in a row were skipped, the last because {reason}.",
                where=f"step {self.progress.step}",
                remedy=remedy,
            )

    def _validate(self) -> None:
        progress, start = self.progress, time.perf_counter()
        kept, samples = self._scored(self._averaged_weights())
        better = kept.values["decisive"] > progress.best or progress.best_step == 0
        if better:
            progress.best, progress.best_step, progress.waiting = kept.values["decisive"], progress.step, 0
            self.best.save(kept)
        else:
            progress.waiting += 1
        if self.snapshots is not None:
            self.snapshots.add(progress.step, kept.values["decisive"], kept.tensors)
        progress.seconds += time.perf_counter() - start
        self.emit(Validated(progress.step, progress.seconds, kept.values["scores"], better, samples))

    def _validate_last(self) -> None:
        """Score the weights that training has ended with, if no validation fell on its last step.

        They are kept apart, so that a run that gets a larger budget goes on as if it had had it from the beginning.
        """
        progress, start = self.progress, time.perf_counter()
        if progress.best_step and progress.step % self.recipe.validate_every == 0:
            self.last.retain([])
        elif self.last.load(progress.step) is None:
            kept, samples = self._scored(self._averaged_weights())
            self.last.save(kept)
            self.last.retain([progress.step])
            progress.seconds += time.perf_counter() - start
            better = kept.values["decisive"] > progress.best or progress.best_step == 0
            self.emit(Validated(progress.step, progress.seconds, kept.values["scores"], better, samples))

    def _averaged_weights(self) -> dict[str, Tensor]:
        """Those that are to become the model: averaged over steps if the recipe says so."""
        if self.average is not None:
            return self.average.values
        return {name: value.detach() for name, value in self.task.module.named_parameters()}

    def _scored(self, weights: dict[str, Tensor], **values: Any) -> tuple[Checkpoint, list[Sample]]:
        """Weights with their scores, and some translations."""
        self.task.module.eval()
        with carrying(self.task.module, weights):
            validation = self.task.validate()
        values |= {"scores": validation.scores, "decisive": _comparable(validation.decisive)}
        return Checkpoint(self.progress.step, weights, values), validation.samples

    def _average_snapshots(self) -> None:
        """Score the mean of the snapshots; it is the model if it is better than the best single weights.

        All of it follows from what the checkpoint counts, so a run that is killed here does the same again.
        """
        if self.snapshots is None:
            return
        progress, start = self.progress, time.perf_counter()
        kept = self.mean.load(progress.step)
        damaged: list[Path] = []
        if kept is None:
            weights, steps, damaged = self.snapshots.mean()
            if len(steps) < 2:
                return
            kept, _ = self._scored(weights, mean_of=steps)
            self.mean.save(kept)
            self.mean.retain([progress.step])
            progress.seconds += time.perf_counter() - start
        single = _best_of(self.best, self.last)
        assert single is not None, "just validated"
        self.emit(
            Averaged(
                progress.step,
                progress.seconds,
                steps=kept.values["mean_of"],
                scores=kept.values["scores"],
                best_step=single.step,
                best_scores=single.values["scores"],
                better=kept.values["decisive"] > single.values["decisive"],
                damaged=[str(path) for path in damaged],
            )
        )

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

    def _spent(self) -> float:
        """How much of the budget will be spent by this step: of steps, epochs or minutes, whichever ends first."""
        progress, budget = self.progress, self.budget
        shares = [0.0]
        if budget.steps is not None:
            shares.append((progress.step - 1) / budget.steps)
        if budget.epochs is not None:
            shares.append(progress.epoch / budget.epochs)
        if budget.minutes is not None:
            shares.append(progress.seconds / (60 * budget.minutes))
        return max(shares)

    def _save(self) -> None:
        values = self._values()
        if values == self._saved:  # such as when a complete run is started once more
            return
        tensors = {f"model.{name}": value.detach() for name, value in self.task.module.named_parameters()}
        tensors |= {f"optimizer.{name}": value for name, value in self.optimizer.tensors().items()}
        tensors["random"] = torch.get_rng_state()  # which every batch takes its seed from
        if self.average is not None:
            tensors |= {f"average.{name}": value for name, value in self.average.values.items()}
        self.checkpoints.save(Checkpoint(self.progress.step, tensors, values))
        if self.snapshots is not None:
            self.snapshots.prune()
        self._saved = values
        self.emit(Saved(self.progress.step))

    def _values(self) -> dict[str, Any]:
        """What a checkpoint holds beside tensors."""
        values = asdict(self.progress) | {"spikes": [self.spikes.in_a_row, self.spikes.recent]}
        if self.average is not None:
            values["average_updates"] = self.average.updates
        if self.snapshots is not None:
            values["snapshots"] = self.snapshots.kept
        return values

    @torch.no_grad()
    def _resume(self) -> None:
        checkpoint, damaged = self.checkpoints.load_newest()
        if checkpoint is None:
            self.emit(Started([str(path) for path in damaged]))
            return
        tensors, values = checkpoint.tensors, dict(checkpoint.values)
        self.spikes.in_a_row, recent = values.pop("spikes", (0, []))
        self.spikes.recent = [(norm, loss) for norm, loss in recent]
        parameters = dict(self.task.module.named_parameters())
        for name, parameter in parameters.items():
            parameter.copy_(tensors[f"model.{name}"])
        if self.average is not None:
            self.average.updates = values.pop("average_updates")
            for name in parameters:
                self.average.values[name].copy_(tensors[f"average.{name}"])
        if self.snapshots is not None:
            self.snapshots.kept = [(step, score) for step, score in values.pop("snapshots")]
        self.progress = Progress(**values)
        prefix = "optimizer."
        self.optimizer.load({k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)})
        torch.set_rng_state(tensors["random"])
        self._saved = self._values()
        self.emit(Resumed(self.progress.step, [str(path) for path in damaged]))


def _best_of(*stores: CheckpointStore) -> Checkpoint | None:
    """Of the weights that are kept in some places, those that validated best."""
    found = [kept for store in stores if (kept := store.load_newest()[0]) is not None]
    return max(found, key=lambda kept: float(kept.values["decisive"]), default=None)


def _comparable(score: float) -> float:
    """A score that is not a number is worse than any."""
    return -math.inf if math.isnan(score) else score
