"""What may be written next: pure functions on log-probabilities, [..., V] in and out, −∞ for what may not.

What remains is not renormalised, so that the score of a hypothesis is the model's own.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.decoding.brackets import Brackets

__all__ = [
    "FORBIDDEN",
    "forbid",
    "forbid_repeated_ngrams",
    "keep_balanced",
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


def keep_balanced(
    log_probs_BKV: Tensor, written_BKT: Tensor, brackets: Brackets, left_B: Tensor, eos_id: int
) -> Tensor:
    """Each row may only go on with its tree: open, close what was opened last, write the next word, or end if closed.

    The next word gets the probability of all words together, for it is known which one it is. `left_B` is how many
    tokens may still be written, the end of sentence included. Tokens that are no part of a tree, such as those of a
    prefix, count for nothing.
    """
    device = log_probs_BKV.device
    openings, closings, leaves = (
        torch.tensor(ids, device=device) for ids in (brackets.openings, brackets.closings, brackets.leaves)
    )
    counts_B = torch.tensor([len(words) for words in brackets.words], device=device)
    rows = [torch.tensor(words, device=device) for words in brackets.words]
    words_BW = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=brackets.words[0][0])
    nothing_V = torch.zeros(log_probs_BKV.size(-1), dtype=torch.long, device=device)
    moves_V = nothing_V.index_fill(0, openings, 1).index_fill(0, closings, -1)
    closer_V = nothing_V.index_copy(0, openings, closings)
    is_leaf_V = nothing_V.index_fill(0, leaves, 1)

    tokens_BKT = F.pad(written_BKT, (1, 0), value=eos_id)  # so that there is a last one
    moves_BKT = moves_V[tokens_BKT]
    depths_BKT = moves_BKT.cumsum(-1)
    depth_BK = depths_BKT[..., -1]
    done_BK = is_leaf_V[tokens_BKT].sum(-1)
    words_BK = counts_B.unsqueeze(1) - done_BK  # still to be written
    is_empty_BK = moves_BKT[..., -1] == 1
    is_begun_BK = (moves_BKT == 1).any(-1)
    # What was opened last and is open still is the last bracket that led to the present depth.
    leads_BKT = (moves_BKT == 1) & (depths_BKT == depth_BK.unsqueeze(-1))
    place_BK = (leads_BKT * torch.arange(tokens_BKT.size(-1), device=device)).amax(-1)
    closer_BK = closer_V[tokens_BKT.gather(-1, place_BK.unsqueeze(-1)).squeeze(-1)]
    next_BK = words_BW.gather(1, done_BK.clamp(max=words_BW.size(1) - 1))

    inside_BK = depth_BK > 0
    spare_BK = left_B.unsqueeze(1) - (words_BK + depth_BK + 1)  # tokens that are not needed to write words and close
    may_open_BK = (words_BK > 0) & (spare_BK >= 2) & (depth_BK < brackets.deepest) & (inside_BK | ~is_begun_BK)
    may_close_BK = inside_BK & ~is_empty_BK & ((depth_BK > 1) | (words_BK == 0))
    may_write_BK = inside_BK & (words_BK > 0)
    allowed = torch.zeros_like(log_probs_BKV, dtype=torch.bool)
    allowed.scatter_(-1, closer_BK.unsqueeze(-1), may_close_BK.unsqueeze(-1))
    allowed.scatter_(-1, next_BK.unsqueeze(-1), may_write_BK.unsqueeze(-1))
    allowed[..., openings] = may_open_BK.unsqueeze(-1)
    allowed[..., eos_id] = is_begun_BK & ~inside_BK
    if len(leaves) > 1:
        any_word_BK1 = log_probs_BKV[..., leaves].logsumexp(-1, keepdim=True)
        log_probs_BKV = log_probs_BKV.scatter(-1, next_BK.unsqueeze(-1), any_word_BK1)
    return log_probs_BKV.masked_fill(~allowed, FORBIDDEN)
