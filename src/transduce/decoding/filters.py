"""What may be written next: pure functions on log-probabilities, [..., V] in and out, −∞ for what may not.

What remains is not renormalised, so that the score of a hypothesis is the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

__all__ = [
    "FORBIDDEN",
    "forbid",
    "forbid_repeated_ngrams",
    "keep_only",
    "keep_top_k",
    "keep_top_p",
    "penalise_repetition",
]

FORBIDDEN = float("-inf")


def forbid(log_probs: Tensor, tokens: Sequence[int]) -> Tensor:
    """No row may write any of `tokens`."""
    return log_probs.index_fill(-1, torch.tensor(tokens, device=log_probs.device), FORBIDDEN)


def keep_only(log_probs: Tensor, token: Tensor) -> Tensor:
    """Each row may write one token only: `token` [..., 1], which broadcasts over rows."""
    index = token.expand(*log_probs.shape[:-1], 1)
    return torch.full_like(log_probs, FORBIDDEN).scatter(-1, index, log_probs.gather(-1, index))


def forbid_repeated_ngrams(log_probs: Tensor, written: Tensor, size: int) -> Tensor:
    """No row may complete an n-gram of `size` tokens that it has in `written` [..., t] already."""
    if written.size(-1) < size:
        return log_probs
    ngrams = written.unfold(-1, size, 1)  # [..., t-size+1, size]
    tail = written[..., written.size(-1) - size + 1 :].unsqueeze(-2)  # the last size-1 tokens
    repeats = (ngrams[..., :-1] == tail).all(-1)
    banned = torch.zeros_like(log_probs).scatter_add(-1, ngrams[..., -1], repeats.to(log_probs.dtype))
    return log_probs.masked_fill(banned > 0, FORBIDDEN)


def penalise_repetition(log_probs: Tensor, written: Tensor, penalty: float) -> Tensor:
    """Multiply the log-probability of tokens in `written` [..., t] by `penalty` (Keskar et al., 2019)."""
    return log_probs.scatter(-1, written, log_probs.gather(-1, written) * penalty)


def keep_top_k(log_probs: Tensor, k: int) -> Tensor:
    """Each row may write its k most probable tokens only."""
    if k >= log_probs.size(-1):
        return log_probs
    values, index = log_probs.topk(k, dim=-1)
    return torch.full_like(log_probs, FORBIDDEN).scatter(-1, index, values)


def keep_top_p(log_probs: Tensor, p: float) -> Tensor:
    """Each row may write the fewest tokens whose probabilities reach the share p (Holtzman et al., 2020)."""
    ranked, index = log_probs.sort(dim=-1, descending=True, stable=True)
    probabilities = ranked.softmax(-1)
    before = probabilities.cumsum(-1) - probabilities  # the share of the more probable tokens
    ranked = ranked.masked_fill(before >= p, FORBIDDEN)
    return torch.full_like(log_probs, FORBIDDEN).scatter(-1, index, ranked)
