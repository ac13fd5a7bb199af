"""The order of the model dimension: sinusoids interleaved, as the paper prints them, or all sines before all cosines.

A network does not care in which order its residual stream stands, as long as all that reads and writes it agrees. So a
model whose sinusoids stand side by side becomes one of the paper's by putting rows and columns of its weights in
another order, and back: exactly, for nothing is computed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import torch
from torch import Tensor

__all__ = ["interleaved", "side_by_side_order"]

MODEL_AXES = {
    r".*tokens\.weight|projection\.weight|.*positions\.weight": 1,
    r".*(qkv|inner|gated)\.weight": 1,
    r".*(output|outer)\.(weight|bias)": 0,
    r".*norm\.(weight|bias)": 0,
    r".*(qkv|inner|gated)\.bias|projection\.bias|.*positions\.bias\.weight": None,
}
"""Which axis of a weight of ours is the model dimension, by name."""


def interleaved(name: str, weight: Tensor) -> Tensor:
    """A weight whose model dimension has sines before cosines, with both in turn."""
    return _ordered(name, weight, lambda places: places.view(2, -1).T.flatten())


def side_by_side_order(name: str, weight: Tensor) -> Tensor:
    """The opposite: sines before cosines."""
    return _ordered(name, weight, lambda places: places.view(-1, 2).T.flatten())


def _ordered(name: str, weight: Tensor, order: Callable[[Tensor], Tensor]) -> Tensor:
    axis = next(axis for pattern, axis in MODEL_AXES.items() if re.fullmatch(pattern, name))
    return weight if axis is None else weight.index_select(axis, order(torch.arange(weight.size(axis))))
