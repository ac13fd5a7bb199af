"""What the loop asks of whatever is learned: batches, their loss, how good the weights are."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

from transduce.data.batches import padded
from transduce.data.shards import Ids
from transduce.text.tokenizer import PAD
from transduce.training.events import Sample
from transduce.training.loss import LossSum

__all__ = ["Task", "Validation", "precision", "tensor"]

Batch = TypeVar("Batch")


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

    def batches(self, epoch: int, start: int) -> Iterator[Batch | None]:
        """The batches of an epoch from number `start` on; the same each time they are asked for.

        Of several ranks each has its rows; None where there are fewer rows than ranks.
        """

    def loss(self, batch: Batch, r_drop: float = 0.0) -> LossSum:
        """Summed over the tokens of a batch, with R-Drop of this weight.

        Called by several threads at once. What it draws at random comes from `transduce.model.dropout`.
        """

    def size(self, batch: Batch) -> int:
        """What the memory that a batch needs grows with, such as its tokens with padding."""

    def split(self, batch: Batch, parts: int) -> list[Batch]:
        """A batch as at most so many of fewer rows; itself if it has only one."""

    def rate(self, step: int) -> float:
        """The learning rate of a step, from 1."""

    def validate(self) -> Validation:
        """Score the module's present weights."""


def precision(device: torch.device) -> torch.autocast:
    """bfloat16 on GPUs that have it (untested on a GPU so far); on CPUs it is far slower than float32."""
    fits = device.type == "cuda" and torch.cuda.is_bf16_supported()
    return torch.autocast(device.type, torch.bfloat16, enabled=fits)


def tensor(device: torch.device, rows: list[Ids], fill: int = PAD) -> Tensor:
    """Rows of ids as one tensor [B, longest], filled up at the end."""
    ids = torch.from_numpy(padded(rows, fill))
    if device.type != "cuda":
        return ids.to(device)
    return ids.pin_memory().to(device, non_blocking=True)  # while the GPU is at the last batch; untested
