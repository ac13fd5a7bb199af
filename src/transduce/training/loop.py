"""The training loop: batches in, updated weights out. It knows no model and no terminal.

A task says what a batch's loss is and how good the weights are; events say what happens. A run that is stopped at any
moment and started again gives, bit for bit, the weights of a run that was not.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict
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
    Cooling,
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
from transduce.training.placing import placed, whole
from transduce.training.progress import Progress
from transduce.training.ranks import ALONE, Ranks
from transduce.training.recipe import Budget, TrainingRecipe
from transduce.training.schedule import at_the_end, cooled
from transduce.training.sharded import ShardedAccumulator
from transduce.training.spikes import SpikeGuard
from transduce.training.task import Task

__all__ = ["Trainer"]

Batch = TypeVar("Batch")

SKIPS_IN_A_ROW = 20
"""Unusable gradients after which training has diverged for good."""


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
        ranks: Ranks = ALONE,
        whole_task: Task[Batch] | None = None,
    ) -> None:
        self.task, self.recipe, self.budget, self.ranks = task, recipe, budget, ranks
        self.emit, self.should_stop = emit, should_stop
        self.checkpoints = CheckpointStore(directory / "checkpoints", writes=ranks.leads)
        self.best, self.last, self.mean = self._kept_stores(directory, ranks.leads)
        self.progress = Progress()
        ranks.take_over([parameter.detach() for parameter in task.module.parameters()])
        self.validated = whole_task or task
        """What is validated: the task, or where ranks have shares of its module, the same one on a whole module."""
        self.accumulator: Accumulator[Batch] | ShardedAccumulator[Batch] = (
            ShardedAccumulator(task, ranks) if whole_task is not None else Accumulator(task, workers, ranks.rank)
        )
        self.optimizer = make_optimizer(task.module, recipe)
        self.spikes = SpikeGuard()
        self._saved: dict[str, Any] = {}
        self.average = MovingAverage(task.module, recipe.average_decay) if recipe.average == "moving" else None
        self.snapshots: Snapshots | None = None
        if recipe.average == "last" or recipe.average == "best":
            self.snapshots = Snapshots(directory / "snapshots", recipe.average, recipe.average_count, ranks.leads)

    @staticmethod
    def _kept_stores(directory: Path, writes: bool = False) -> tuple[CheckpointStore, CheckpointStore, CheckpointStore]:
        """Where a run keeps the weights that validated best, those that it ended with, the mean of its snapshots."""
        best = CheckpointStore(directory / "best", keep=1, writes=writes)
        last, mean = (CheckpointStore(directory / name, keep=None, writes=writes) for name in ("last", "mean"))
        return best, last, mean

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

    def step(self, group: list[Batch | None]) -> None:
        """Add up the gradients of a group of batches, divide by its tokens, update the weights once."""
        progress, start = self.progress, time.perf_counter()
        self.task.module.train()
        self.optimizer.forget_gradients()
        progress.step, progress.batch = progress.step + 1, progress.batch + len(group)
        spent = progress.spent(self.budget)
        r_drop = self.recipe.r_drop * at_the_end(spent, self.recipe.r_drop_share)
        total = self.accumulator.over(self.ranks, sum((self._add(batch, r_drop) for batch in group), Added()))
        if self.ranks.count > 1:
            self._report_halved(total)
        tokens = max(1, total.tokens)  # none if no pair has fitted into memory
        gradients = [p.grad for p in self.task.module.parameters() if p.grad is not None]
        if gradients:
            torch._foreach_div_(gradients, tokens)
        norm, loss = float(whole(torch.nn.utils.get_total_norm(gradients))), total.loss / tokens
        rate = self.task.rate(progress.step) * cooled(spent, self.recipe.cooldown)
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

    def _add(self, batch: Batch | None, r_drop: float) -> Added:
        """Add a batch's gradient to the step's."""
        added = self.accumulator.add(batch, r_drop)
        if self.ranks.count == 1:
            self._report_halved(added)
        return added

    def _report_halved(self, added: Added) -> None:
        if added.failed:
            self.emit(Halved(self.progress.step, added.parts, added.left_out))

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
        elif self.ranks.of_leader(self.last.load(progress.step) is None):
            kept, samples = self._scored(self._averaged_weights())
            self.last.save(kept)
            self.last.retain([progress.step])
            progress.seconds += time.perf_counter() - start
            better = kept.values["decisive"] > progress.best or progress.best_step == 0
            self.emit(Validated(progress.step, progress.seconds, kept.values["scores"], better, samples))

    def _averaged_weights(self) -> dict[str, Tensor]:
        """Those that are to become the model: averaged over steps if the recipe says so."""
        values = dict(self.task.module.named_parameters()) if self.average is None else self.average.values
        return {name: whole(value) for name, value in values.items()}

    def _scored(self, weights: dict[str, Tensor], **values: Any) -> tuple[Checkpoint, list[Sample]]:
        """Weights with their scores, and some translations."""
        self.validated.module.eval()
        with carrying(self.validated.module, weights):
            validation = self.validated.validate()
        values |= {"scores": validation.scores, "decisive": _comparable(validation.decisive)}
        return Checkpoint(self.progress.step, weights, values), validation.samples

    def _average_snapshots(self) -> None:
        """Score the mean of the snapshots; it is the model if it is better than the best single weights.

        All of it follows from what the checkpoint counts, so a run that is killed here does the same again.
        """
        if self.snapshots is None:
            return
        progress, start = self.progress, time.perf_counter()
        self.ranks.wait()  # for the leader to have written what all read
        kept = self.mean.load(progress.step)
        damaged: list[Path] = []
        if self.ranks.of_leader(kept is None):
            weights, steps, damaged = self.snapshots.mean()
            if len(steps) < 2:
                return
            kept, _ = self._scored(weights, mean_of=steps)
            self.mean.save(kept)
            self.mean.retain([progress.step])
            progress.seconds += time.perf_counter() - start
        if not self.ranks.leads:
            return
        single = _best_of(self.best, self.last)
        assert single is not None, "just validated"
        assert kept is not None, "just saved"
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
        progress = self.progress
        # All ranks go by the leader's clock, and stop when one of them is asked to.
        progress.seconds, asked = self.ranks.total(progress.seconds * self.ranks.leads, self.should_stop())
        if progress.cool_early(self.budget, self.recipe.patience, self.recipe.cooldown):
            self.emit(Cooling(progress.step, progress.cooled_by))
        if (reason := progress.reason_to_end(self.budget, self.recipe.patience)) is not None:
            return Finished(progress.step, reason, complete=True)
        return Finished(progress.step, "stopped; run the same command to go on", False) if asked else None

    def _save(self) -> None:
        values = self._values()
        if self.ranks.of_leader(values == self._saved):  # such as when a complete run is started once more
            return
        parts: dict[str, Mapping[str, Tensor]] = {
            "model": dict(self.task.module.named_parameters()),
            "optimizer": self.optimizer.tensors(),
            "average": {} if self.average is None else self.average.values,
        }
        named = ((f"{part}.{name}", whole(value)) for part, each in parts.items() for name, value in each.items())
        tensors = {name: value for name, value in named if self.ranks.leads}
        tensors["random"] = torch.get_rng_state()  # which every batch takes its seed from; all ranks have the same
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
        checkpoint, damaged = self._newest_checkpoint()
        if checkpoint is None:
            self.emit(Started([str(path) for path in damaged]))
            return
        tensors, values = checkpoint.tensors, dict(checkpoint.values)
        self.spikes.in_a_row, recent = values.pop("spikes", (0, []))
        self.spikes.recent = [(norm, loss) for norm, loss in recent]
        parameters = dict(self.task.module.named_parameters())
        for name, parameter in parameters.items():
            parameter.copy_(placed(tensors[f"model.{name}"], parameter))
        if self.average is not None:
            self.average.updates = values.pop("average_updates")
            for name in parameters:
                self.average.values[name].copy_(placed(tensors[f"average.{name}"], parameters[name]))
        if self.snapshots is not None:
            self.snapshots.kept = [(step, score) for step, score in values.pop("snapshots")]
        self.progress = Progress(**values)
        prefix = "optimizer."
        self.optimizer.load({k[len(prefix) :]: v for k, v in tensors.items() if k.startswith(prefix)})
        torch.set_rng_state(tensors["random"])
        self._saved = self._values()
        self.emit(Resumed(self.progress.step, [str(path) for path in damaged]))
        if self.progress.cooled_by:
            self.emit(Cooling(self.progress.step, self.progress.cooled_by))

    def _newest_checkpoint(self) -> tuple[Checkpoint | None, list[Path]]:
        """The one that the leader finds, on all ranks."""
        if self.ranks.leads:
            checkpoint, damaged = self.checkpoints.load_newest()
            self.ranks.of_leader(checkpoint and checkpoint.step)
            return checkpoint, damaged
        step = self.ranks.of_leader(None)
        if step is None:
            return None, []
        checkpoint = self.checkpoints.load(step)
        if checkpoint is None:
            raise StorageError(
                f"rank {self.ranks.rank} cannot read the checkpoint that rank 0 goes on from.",
                where=str(self.checkpoints.path(step)),
                remedy="The directory of the model must be one that all machines share.",
            )
        return checkpoint, []


def _best_of(*stores: CheckpointStore) -> Checkpoint | None:
    """Of the weights that are kept in some places, those that validated best."""
    found = [kept for store in stores if (kept := store.load_newest()[0]) is not None]
    return max(found, key=lambda kept: float(kept.values["decisive"]), default=None)


def _comparable(score: float) -> float:
    """A score that is not a number is worse than any."""
    return -math.inf if math.isnan(score) else score
