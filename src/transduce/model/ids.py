"""Token ids as a model expects them, or an error that says what is wrong with them."""

from __future__ import annotations

import torch
from torch import Tensor

from transduce.errors import InputError

__all__ = ["check_ids"]


def check_ids(ids: Tensor, side: str, size: int) -> None:
    """Refuse anything but a batch [B,T] of ids below `size`; `side` is what messages call it."""
    if not isinstance(ids, Tensor):
        raise InputError(f"{side} ids are a {type(ids).__name__}.", remedy="Give a tensor: torch.tensor(ids).")
    if ids.dim() != 2:
        raise InputError(
            f"{side} ids have shape {list(ids.shape)}.",
            remedy="Give a batch [sentences, length]; for one sentence, ids.unsqueeze(0).",
        )
    if ids.dtype not in (torch.long, torch.int):
        raise InputError(f"{side} ids are of type {ids.dtype}.", remedy="Give integers: ids.long().")
    if ids.numel() == 0:
        raise InputError(f"{side} ids of shape {list(ids.shape)} are empty.", remedy="Give at least one token.")
    low, high = (int(bound) for bound in ids.aminmax())
    if low < 0 or high >= size:
        wrong = low if low < 0 else high
        row, column = (ids == wrong).nonzero()[0].tolist()
        raise InputError(
            f"{side} id {wrong} in sequence {row}, position {column}, lies outside the vocabulary of {size} ids.",
            remedy=f"Ids run from 0 to {size - 1}: do tokeniser and model belong together?",
        )
