"""Averaged weights: smoother than the last step's, and better.

Either a moving average beside the weights, or the mean of the last (§6.1) or the best few that were validated.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

import torch
from torch import Tensor, nn

from transduce.training.checkpoint import Checkpoint, CheckpointStore

__all__ = ["MovingAverage", "Snapshots", "carrying", "mean_weights"]


class MovingAverage:
    """An exponential moving average of a module's parameters.

    Early on it follows the weights closely, (1+t)/(10+t) in place of the decay, so that it does not drag the starting
    values along.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.values: dict[str, Tensor] = {
            name: parameter.detach().clone() for name, parameter in module.named_parameters()
        }

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Take in the weights of one more step."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        parameters = dict(module.named_parameters())
        torch._foreach_lerp_(list(self.values.values()), [parameters[name].detach() for name in self.values], 1 - decay)


class Snapshots:
    """The weights of some validations, kept on disk until their mean is taken: the newest, or the best."""

    def __init__(self, directory: Path, choice: Literal["last", "best"], count: int, writes: bool = True) -> None:
        self.store = CheckpointStore(directory, keep=None, writes=writes)
        self.choice, self.count = choice, count
        self.kept: list[tuple[int, float]] = []
        """Step and score of each, by step; belongs into the run's checkpoint. What else is on disk does not count."""

    def add(self, step: int, score: float, weights: dict[str, Tensor]) -> None:
        """Keep the weights of a step if they are among the newest, or the best."""
        candidates = [*self.kept, (step, score)]
        if self.choice == "best":
            candidates.sort(key=lambda each: (each[1], each[0]))
        self.kept = sorted(candidates[-self.count :])
        if (step, score) in self.kept:
            self.store.save(Checkpoint(step, weights, {"score": score}))

    def prune(self) -> None:
        """Delete the others; once a checkpoint is on disk that no longer counts them."""
        self.store.retain([step for step, _ in self.kept])

    def mean(self) -> tuple[dict[str, Tensor], list[int], list[Path]]:
        """The mean of the sound ones, their steps, and where the others should be."""
        steps: list[int] = []
        damaged: list[Path] = []

        def sound() -> Iterator[dict[str, Tensor]]:
            for step, _ in self.kept:
                snapshot = self.store.load(step)
                if snapshot is None:
                    damaged.append(self.store.path(step))
                else:
                    steps.append(step)
                    yield snapshot.tensors

        return mean_weights(sound()), steps, damaged


def mean_weights(snapshots: Iterable[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    """The mean of each weight, added up in double precision; one snapshot is in memory at a time."""
    totals: dict[str, Tensor] = {}
    kinds: dict[str, torch.dtype] = {}
    count = 0
    for snapshot in snapshots:
        count += 1
        for name, value in snapshot.items():
            totals[name] = totals[name] + value.double() if name in totals else value.double()
            kinds[name] = value.dtype
    return {name: (total / count).to(kinds[name]) for name, total in totals.items()}


@contextmanager
def carrying(module: nn.Module, weights: dict[str, Tensor]) -> Iterator[None]:
    """The module with other weights for as long as the block lasts."""
    _exchange(module, weights)
    try:
        yield
    finally:
        _exchange(module, weights)


@torch.no_grad()
def _exchange(module: nn.Module, weights: dict[str, Tensor]) -> None:
    for name, parameter in module.named_parameters():
        if name in weights:
            kept = parameter.detach().clone()
            parameter.copy_(weights[name])
            weights[name].copy_(kept)
