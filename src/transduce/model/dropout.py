"""Dropout (§5.4) from few random bits: on a CPU, drawing a number for each element took a tenth of a training step."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch
import torch.nn.functional as F
from torch import Tensor, nn

__all__ = ["Dropout", "dropout", "generator", "randomness"]

LEVELS = 1 << 16
"""A probability is met to within 1/131,072: each element is decided by 16 random bits."""

_generator: ContextVar[torch.Generator | None] = ContextVar("generator", default=None)


@contextmanager
def randomness(seed: int) -> Iterator[None]:
    """Let dropout in this thread draw from a seed, until the end of the block, whatever other threads draw."""
    token = _generator.set(torch.Generator().manual_seed(seed))
    if torch.cuda.is_available():  # there dropout is PyTorch's own; untested
        torch.cuda.manual_seed(seed)
    try:
        yield
    finally:
        _generator.reset(token)


def generator() -> torch.Generator | None:
    """What this thread draws from inside `randomness`; None, PyTorch's own, elsewhere."""
    return _generator.get()


def dropout(x: Tensor, probability: float) -> Tensor:
    """Set each element to zero with a probability, and scale the others so that the expected value stays."""
    dropped = round(probability * LEVELS)
    if dropped == 0:
        return x
    if x.device.type != "cpu" or dropped == LEVELS:
        return F.dropout(x, probability)
    bits = torch.empty((x.numel() + 3) // 4, dtype=torch.int64).random_(-(2**63), None, generator=generator())
    noise = bits.view(torch.int16)[: x.numel()].view(x.shape)  # evenly from -LEVELS/2 to LEVELS/2 - 1
    kept = torch.ge(noise, dropped - LEVELS // 2, out=torch.empty(x.shape, dtype=x.dtype))
    return x * kept.mul_(LEVELS / (LEVELS - dropped))


class Dropout(nn.Module):
    """`dropout` while training, nothing otherwise."""

    def __init__(self, probability: float) -> None:
        super().__init__()
        self.probability = probability

    def forward(self, x: Tensor) -> Tensor:
        """Of any shape."""
        return dropout(x, self.probability) if self.training else x
