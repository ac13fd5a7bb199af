"""Models that outgrow a device: every rank keeps a share of each weight, its gradient and what the optimiser remembers.

PyTorch's `fully_shard` (FSDP2) brings a layer's weights together while it computes, and adds gradients up where they
are kept. What is saved and measured is whole, so a run can go on with another number of ranks, or without shares.
Tried with Gloo on CPUs; on GPUs untested.
"""

from __future__ import annotations

import warnings
from typing import Any, Generic, TypeVar

import torch
from torch import nn

from transduce.errors import ConfigError, ModelError
from transduce.model.dropout import randomness
from transduce.model.layers import DecoderLayer
from transduce.training.accumulate import Added
from transduce.training.loss import LossSum
from transduce.training.ranks import Ranks
from transduce.training.task import Task

__all__ = ["ShardedAccumulator"]

Batch = TypeVar("Batch")


class ShardedAccumulator(Generic[Batch]):
    """Adds up gradients as `Accumulator` does; making one gives each rank its share of the task's module.

    All ranks take part in every pass, so batches are computed whole, and one that does not fit fails: then it must
    be made smaller, or its gradient accumulated.
    """

    def __init__(self, task: Task[Batch], ranks: Ranks) -> None:
        self.ranks = ranks
        self.parameters: list[nn.Parameter] = []
        self._loss = _Loss(task)
        self._last: Batch | None = None
        _shard(self._loss, ranks)
        self.parameters = list(task.module.parameters())

    def add(self, batch: Batch | None, r_drop: float = 0.0) -> Added:
        """Add the gradient of a batch."""
        seed = int(torch.randint(2**31, ())) + (self.ranks.rank << 32)
        counts, self._last = batch is not None, self._last if batch is None else batch
        if self._last is None:
            raise ModelError(
                f"the first batch has fewer rows than there are ranks, {self.ranks.count}.",
                remedy="Raise training.batch_tokens.",
            )
        with randomness(seed):
            part: LossSum = self._loss(self._last, r_drop)
            torch.autograd.backward(
                part.loss * float(counts)
            )  # a rank without rows computes with the others, for nothing
        return Added(part.loss.item(), part.nll.item(), part.tokens, parts=1) if counts else Added()

    def over(self, ranks: Ranks, added: Added) -> Added:
        """What all ranks have added; their gradients have been added up on the way."""
        loss, nll, tokens, parts = ranks.total(added.loss, added.nll, added.tokens, added.parts)
        gradients = [parameter.grad for parameter in self.parameters if parameter.grad is not None]
        torch._foreach_mul_(gradients, ranks.count)  # they are means over ranks
        return Added(loss, nll, int(tokens), int(parts))


class _Loss(nn.Module):
    """A task's loss as a module: what FSDP brings weights together for is a call of a module."""

    def __init__(self, task: Task[Any]) -> None:
        super().__init__()
        self.module = task.module
        self._task = task

    def forward(self, batch: Any, r_drop: float) -> LossSum:
        return self._task.loss(batch, r_drop)


def _shard(loss: nn.Module, ranks: Ranks) -> None:
    try:
        from torch.distributed.device_mesh import init_device_mesh
        from torch.distributed.fsdp import fully_shard, register_fsdp_forward_method
    except ImportError as error:
        raise ConfigError(
            "--shard needs PyTorch 2.6 or later.", remedy="Train without --shard, or update it."
        ) from error
    # It is afraid of changes in place behind what a layer returns; there are none.
    warnings.filterwarnings("ignore", message="FSDP2-wrapped module .* returned a view")
    mesh = init_device_mesh(ranks.device.type, (ranks.count,))
    for stack in [each for each in loss.modules() if isinstance(each, nn.ModuleList)]:
        for layer in stack:
            if isinstance(layer, DecoderLayer):  # whose keys and values are computed before it is called
                fully_shard(layer.cross_attention, mesh=mesh)
                register_fsdp_forward_method(layer.cross_attention, "keys_and_values")
            fully_shard(layer, mesh=mesh)
    fully_shard(loss, mesh=mesh)
