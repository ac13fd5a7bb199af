"""Which tokens to go on with: the most probable ones (beam, greedy) or drawn ones (sampling).

Both choose from log-probabilities [B,K,V] and give two sets of candidates: those that end, those that go on.
Shapes: B sentences, K beams so far, N samples, V vocabulary, L longest limit.
"""

from __future__ import annotations

import hashlib

import torch
import torch.nn.functional as F
from torch import Tensor

from transduce.decoding.beams import IMPOSSIBLE, Candidates
from transduce.decoding.filters import keep_top_k, keep_top_p
from transduce.decoding.options import DecodingOptions

__all__ = ["choose_best", "choose_drawn", "pick", "random_numbers"]


def choose_best(
    log_probs_BKV: Tensor, allowed_BKV: Tensor, totals_BK: Tensor, eos_id: int, width: int
) -> tuple[Candidates, Candidates]:
    """Beam search: of all ways to go on, the best `width` that do not end, and those of the best `width` that do.

    Each beam has one way to end, so that the best 2·width always hold `width` that do not.
    """
    vocabulary = allowed_BKV.size(-1)
    totals_BX = (totals_BK.unsqueeze(-1) + allowed_BKV).flatten(1)
    totals, index = totals_BX.topk(min(2 * width, totals_BX.size(1)))
    missing = (0, 2 * width - totals.size(1))  # a vocabulary may be smaller than the beam
    best = Candidates(
        parents=F.pad(index // vocabulary, missing),
        tokens=F.pad(index % vocabulary, missing),
        token_scores=F.pad(log_probs_BKV.flatten(1).gather(1, index), missing),
        totals=F.pad(totals, missing, value=IMPOSSIBLE),
    )
    ends = best.tokens == eos_id
    ending = Candidates(*(part[:, :width] for part in best.where(ends)))
    going_on = best.where(~ends)
    order = going_on.totals.argsort(dim=1, descending=True, stable=True)[:, :width]
    return ending, Candidates(*(part.gather(1, order) for part in going_on))


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
