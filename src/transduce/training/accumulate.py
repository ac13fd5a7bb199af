"""Gradients of batches, added up: shared among workers, and halved where memory has no room."""

from __future__ import annotations

import math
from dataclasses import astuple, dataclass
from functools import partial
from typing import Generic, TypeVar

import torch
from torch import Tensor

from transduce.model.dropout import randomness
from transduce.model.workers import Workers
from transduce.training.ranks import Ranks
from transduce.training.task import Task

__all__ = ["Accumulator", "Added", "is_out_of_memory"]

Batch = TypeVar("Batch")
Gradient = list[Tensor | None]
"""By parameter; None where a parameter had no part in the loss."""

NO_MEMORY = ("can't allocate memory", "cannot allocate memory", "not enough memory", "out of memory", "bad_alloc")
"""What PyTorch's allocators say, in small letters: that of CPUs has no error class of its own."""


@dataclass(frozen=True)
class Added:
    """What a batch has added to the gradient, and how."""

    loss: float = 0.0
    nll: float = 0.0
    tokens: int = 0
    parts: int = 0
    """In how many parts it was computed."""
    left_out: int = 0
    """Rows that did not fit even by themselves."""
    failed: bool = False
    """Whether it, or a part of it, was found not to fit; False if it was known before."""

    def __add__(self, other: Added) -> Added:
        return Added(
            self.loss + other.loss,
            self.nll + other.nll,
            self.tokens + other.tokens,
            self.parts + other.parts,
            self.left_out + other.left_out,
            self.failed or other.failed,
        )


class Accumulator(Generic[Batch]):
    """Adds the gradients of batches to those that the parameters have.

    Losses are sums over tokens, so the gradients of a batch's parts add up to its own: parts are what several workers
    take at once, and what is left of a batch that does not fit.
    """

    def __init__(self, task: Task[Batch], workers: Workers | None = None, rank: int = 0) -> None:
        self.task, self.workers, self.rank = task, workers or Workers(), rank
        self.parameters = list(task.module.parameters())
        self.too_large = math.inf
        """Size from which batches are halved at once. It starts afresh with each start of a run, and may: a batch that
        fails first and one that is halved at once give the same gradient."""

    def add(self, batch: Batch | None, r_drop: float = 0.0) -> Added:
        """Add the gradient of a batch, in parts if need be; none of a batch that has no rows for this rank."""
        seed = int(torch.randint(2**31, ()))  # the same on all ranks, and drawn by all, so that they stay in step
        if batch is None:
            return Added()
        count = self.workers.count
        rounds = math.ceil(self.task.size(batch) / (count * self.workers.at_once))
        parts = self.task.split(batch, count * max(1, rounds))
        # A seed for each: what is drawn at random does not depend on who is done first, nor on what has failed.
        generator = torch.Generator().manual_seed(seed + (self.rank << 32))
        seeds = torch.randint(2**31, (len(parts),), generator=generator).tolist()
        total = Added()
        for gradient, added in self.workers.map(partial(self._gradient, r_drop), parts, seeds):
            self._add(gradient)
            gradient.clear()  # it can be as large as the model, and the name would hold it until the next one is there
            total += added
        return total

    def over(self, ranks: Ranks, added: Added) -> Added:
        """Add up the gradients of all ranks, and what each has to say of its own."""
        if ranks.count == 1:
            return added
        there = (parameter.grad is not None for parameter in self.parameters)
        numbers = ranks.total(*astuple(added), *there)
        loss, nll, tokens, parts, left_out, failed = numbers[:6]
        for parameter, count in zip(self.parameters, numbers[6:], strict=True):
            if count and parameter.grad is None:  # others had rows, or words, that this rank had not
                parameter.grad = torch.zeros_like(parameter)
        ranks.add_up([parameter.grad for parameter in self.parameters if parameter.grad is not None])
        return Added(loss, nll, int(tokens), int(parts), int(left_out), failed > 0)

    def _gradient(self, r_drop: float, batch: Batch, seed: int) -> tuple[Gradient, Added]:
        """The gradient of a batch, by parameter; halved if memory has no room for it."""
        fits = self.task.size(batch) < self.too_large
        if fits and (found := self._attempt(r_drop, batch, seed)) is not None:
            return found
        halves = self.task.split(batch, 2)
        if len(halves) == 1:  # however large, a single row is tried
            found = None if fits else self._attempt(r_drop, batch, seed)
            return found or ([None] * len(self.parameters), Added(left_out=1, failed=True))
        self.too_large = min(self.too_large, self.task.size(batch))
        one, other = (self._gradient(r_drop, half, 2 * seed + number) for number, half in enumerate(halves, start=1))
        return _sum(one[0], other[0]), one[1] + other[1] + Added(failed=fits)

    def _attempt(self, r_drop: float, batch: Batch, seed: int) -> tuple[Gradient, Added] | None:
        """The gradient of a batch as a whole; None if memory has no room for it."""
        try:
            with randomness(seed):
                part = self.task.loss(batch, r_drop)
                gradient = torch.autograd.grad(part.loss, self.parameters, allow_unused=True)
            return list(gradient), Added(part.loss.item(), part.nll.item(), part.tokens, parts=1)
        except (RuntimeError, MemoryError) as error:
            if not is_out_of_memory(error):
                raise
        if torch.cuda.is_available():  # here and not above: an error that is being handled holds on to the memory
            torch.cuda.empty_cache()
        return None

    def _add(self, gradient: Gradient) -> None:
        total = _sum([parameter.grad for parameter in self.parameters], gradient)
        for parameter, value in zip(self.parameters, total, strict=True):
            parameter.grad = value


def _sum(one: Gradient, other: Gradient) -> Gradient:
    """Both gradients; the first one's tensors are used for it."""
    pairs = [(mine, more) for mine, more in zip(one, other, strict=True) if mine is not None and more is not None]
    if pairs:
        torch._foreach_add_([mine for mine, _ in pairs], [more for _, more in pairs])
    return [more if mine is None else mine for mine, more in zip(one, other, strict=True)]


def is_out_of_memory(error: Exception) -> bool:
    """Whether an error says that memory could not be had."""
    if isinstance(error, torch.OutOfMemoryError | MemoryError):
        return True
    return isinstance(error, RuntimeError) and any(words in str(error).lower() for words in NO_MEMORY)
