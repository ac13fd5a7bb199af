"""Which tokens to go on with: the most probable ones (beam, greedy) or drawn ones (sampling).

Both choose from log-probabilities [B,K,V] and give two sets of candidates: those that end, those that go on.
Shapes: B sentences, K beams so far, C candidates of a beam, X of all, N samples, V vocabulary, L longest limit.
"""

from __future__ import annotations

import hashlib

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.decoding.beams import IMPOSSIBLE, Candidates
from transduce.decoding.filters import keep_top_k, keep_top_p
from transduce.decoding.options import DecodingOptions

__all__ = ["choose_best", "choose_drawn", "largest", "pick", "random_numbers"]

BLOCK = 64
"""Numbers whose maximum is taken before any are compared one by one."""


def choose_best(
    log_probs_BKV: Tensor, allowed_BKV: Tensor, totals_BK: Tensor, eos_id: int, width: int
) -> tuple[Candidates, Candidates]:
    """Beam search: of all ways to go on, the best `width` that do not end, and those of the best `width` that do.

    Each beam has one way to end, so that the best 2·width always hold `width` that do not.
    """
    values_BKC, tokens_BKC = largest(allowed_BKV, min(2 * width, allowed_BKV.size(-1)))  # C of each beam suffice
    totals_BX = (totals_BK.unsqueeze(-1) + values_BKC).flatten(1)
    totals, index = totals_BX.topk(min(2 * width, totals_BX.size(1)))
    parents, tokens = index // values_BKC.size(-1), tokens_BKC.flatten(1).gather(1, index)
    token_scores = log_probs_BKV.flatten(1).gather(1, parents * log_probs_BKV.size(-1) + tokens)
    missing = (0, 2 * width - totals.size(1))  # a vocabulary may be smaller than the beam
    best = Candidates(
        F.pad(parents, missing), F.pad(tokens, missing), F.pad(token_scores, missing),
        totals=F.pad(totals, missing, value=IMPOSSIBLE),
    )  # fmt: skip
    ends = best.tokens == eos_id
    ending = Candidates(*(part[:, :width] for part in best.where(ends)))
    going_on = best.where(~ends)
    order = going_on.totals.argsort(dim=1, descending=True, stable=True)[:, :width]
    return ending, Candidates(*(part.gather(1, order) for part in going_on))


def largest(values: Tensor, count: int) -> tuple[Tensor, Tensor]:
    """The largest along the last dimension, in order, and where they are, as `topk`, but faster on a CPU.

    They can only be in those blocks that have the largest maxima.
    """
    size = values.size(-1)
    blocks = size // BLOCK
    if blocks <= 2 * count:
        return values.topk(count)
    even = values[..., : blocks * BLOCK].reshape(*values.shape[:-1], blocks, BLOCK)
    chosen = even.amax(-1).topk(count, sorted=False).indices.unsqueeze(-1)
    inside = torch.arange(BLOCK, device=values.device)
    found = even.gather(-2, chosen.expand(*chosen.shape[:-1], BLOCK)).flatten(-2)
    places = (chosen * BLOCK + inside).flatten(-2)
    rest = torch.arange(blocks * BLOCK, size, device=values.device).expand(*values.shape[:-1], -1)
    found, places = torch.cat((found, values[..., blocks * BLOCK :]), -1), torch.cat((places, rest), -1)
    best = found.topk(count)
    return best.values, places.gather(-1, best.indices)


def choose_drawn(
    log_probs_BKV: Tensor,
    allowed_BKV: Tensor,
    totals_BK: Tensor,
    eos_id: int,
    numbers_BN: Tensor,
    options: DecodingOptions,
) -> tuple[Candidates, Candidates]:
    """Sampling: one drawn token for each of N samples, which grow from one beam at first."""
    samples = numbers_BN.size(1)
    parents = torch.arange(samples, device=allowed_BKV.device).clamp(max=allowed_BKV.size(1) - 1)
    parents_BN = parents.expand_as(numbers_BN)
    tokens_BN = pick(_sharpened(allowed_BKV, options).expand(-1, samples, -1), numbers_BN)

    def of_tokens(values_BKV: Tensor) -> Tensor:
        return values_BKV.expand(-1, samples, -1).gather(-1, tokens_BN.unsqueeze(-1)).squeeze(-1)

    totals_BN = totals_BK.gather(1, parents_BN) + of_tokens(allowed_BKV)
    drawn = Candidates(parents_BN, tokens_BN, of_tokens(log_probs_BKV), totals_BN)
    ends = tokens_BN == eos_id
    return drawn.where(ends), drawn.where(~ends)


def pick(log_probs: Tensor, numbers: Tensor) -> Tensor:
    """The token [...] at which cumulative probability reaches a number [...] of 0 to 1, most probable first."""
    ranked, index = log_probs.double().sort(dim=-1, descending=True, stable=True)
    cumulative = ranked.softmax(-1).cumsum(-1)
    threshold = numbers.unsqueeze(-1) * cumulative[..., -1:]
    rank = (cumulative < threshold).sum(-1, keepdim=True)  # strictly below: never past the last possible token
    return index.gather(-1, rank).squeeze(-1)


def random_numbers(source_ids: Tensor, pad_id: int, limits: list[int], options: DecodingOptions) -> Tensor:
    """Uniform numbers [B,N,L], one for each token of each sample.

    They are seeded by the sentence itself, so that a sample does not depend on what else is in the batch.
    """
    numbers = torch.zeros(len(limits), options.n_best, max(limits), dtype=torch.double)
    for index, (row, limit) in enumerate(zip(source_ids.tolist(), limits, strict=True)):
        tokens = [token for token in row if token != pad_id]
        digest = hashlib.sha256(f"{options.seed}:{tokens}".encode()).digest()
        generator = torch.Generator().manual_seed(int.from_bytes(digest[:8], "little", signed=True))
        numbers[index, :, :limit] = torch.rand(options.n_best, limit, generator=generator, dtype=torch.double)
    return numbers.to(source_ids.device)


def _sharpened(log_probs: Tensor, options: DecodingOptions) -> Tensor:
    if options.temperature != 1:
        log_probs = log_probs / options.temperature
    if options.top_k:
        log_probs = keep_top_k(log_probs, options.top_k)
    if options.top_p < 1:
        log_probs = keep_top_p(log_probs, options.top_p)
    return log_probs
