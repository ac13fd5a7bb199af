"""Sampled softmax (Jean et al., 2015): a few pieces of the vocabulary that stand for all of it.

The projection to a vocabulary takes two fifths of a small model's step, and nearly all of it goes into pieces that are
far from right. So the right pieces of a batch are compared with each other and with some others that are drawn anew
each time, each of which stands for as many as it was drawn from: Σ exp(logit) is right on average.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from transduce.model.dropout import generator

__all__ = ["Candidates", "candidates"]


class Candidates(NamedTuple):
    """Rows of a vocabulary, in order."""

    ids: Tensor
    """[C] of V."""
    counts: Tensor
    """[C]: how many rows of the vocabulary each stands for: 1 for right ones; together V."""
    labels: Tensor
    """[N]: the right ones by their place among these."""


def candidates(labels_N: Tensor, vocabulary: int, sampled: int) -> Candidates | None:
    """All that are right somewhere and `sampled` of the others; None where that would be all there are."""
    wanted = torch.zeros(vocabulary, dtype=torch.bool, device=labels_N.device)
    wanted[labels_N] = True
    others = (~wanted).nonzero().squeeze(1)
    if len(others) <= sampled:
        return None
    drawn = torch.randperm(len(others), generator=generator())[:sampled].to(others.device)
    chosen = wanted.index_fill(0, others[drawn], True)
    ids_C = chosen.nonzero().squeeze(1)
    counts_C = torch.where(wanted[ids_C], 1.0, len(others) / sampled)
    return Candidates(ids_C, counts_C, chosen.cumsum(0)[labels_N] - 1)
