"""Tensors of which each rank has a share (PyTorch's DTensor), and whole ones: from one to the other."""

from __future__ import annotations

from typing import Any

from torch import Tensor

__all__ = ["placed", "whole"]


def whole(tensor: Tensor) -> Tensor:
    """A tensor of which each rank has a share, put together; any other as it is. All ranks must ask."""
    together: Tensor = tensor.full_tensor() if hasattr(tensor, "full_tensor") else tensor
    return together.detach()


def placed(value: Tensor, like: Tensor) -> Tensor:
    """A copy of a whole tensor, where and in the shares that another one is in."""
    moved = value.to(like.device, copy=True)
    if not hasattr(like, "full_tensor"):
        return moved
    from torch.distributed.tensor import distribute_tensor

    shared: Any = like
    return distribute_tensor(moved, shared.device_mesh, shared.placements, src_data_rank=None)
