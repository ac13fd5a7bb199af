"""Who may look at whom: boolean masks, True where looking is allowed."""

from __future__ import annotations

import torch
from torch import Tensor

__all__ = ["causal_mask", "padding_mask"]


def padding_mask(ids_BS: Tensor, pad_id: int) -> Tensor | None:
    """[B,1,1,S], True on real tokens; None where nothing is padded, so that nobody pays for a mask."""
    real_BS = ids_BS != pad_id
    return None if bool(real_BS.all()) else real_BS[:, None, None, :]


def causal_mask(queries: int, keys: int, device: torch.device | None = None) -> Tensor:
    """[T,S], True where a query may look: itself and what comes before it.

    The queries are the last positions of the keys, so that a step with cached keys sees all of them.
    """
    return torch.ones(queries, keys, dtype=torch.bool, device=device).tril(keys - queries)
