"""The hypotheses of a batch while it is being searched: live ones that grow, finished ones that wait.

Shapes: B sentences still searched, K beams (live), N finished ones kept, L longest limit, C candidates.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.options import DecodingOptions
from transduce.decoding.penalty import length_penalty
from transduce.decoding.scoring import upper_bound

__all__ = ["Beams", "Candidates"]

IMPOSSIBLE = float("-inf")


class Candidates(NamedTuple):
    """Ways to go on, each [B,C]; a total of −∞ marks a place that is not taken."""

    parents: Tensor
    """The beam, 0 … K-1, that is continued."""
    tokens: Tensor
    """The token that is added."""
    token_scores: Tensor
    """The model's log-probability of that token."""
    totals: Tensor
    """The log-probability that the search goes by, of all tokens with this one."""

    def where(self, taken: Tensor) -> Candidates:
        """The same places, with only some of them taken."""
        return self._replace(totals=self.totals.masked_fill(~taken, IMPOSSIBLE))


class History(NamedTuple):
    """Tokens written so far and their scores, [B, beams or finished, L] each."""

    tokens: Tensor
    token_scores: Tensor

    def select(self, beams: Tensor) -> History:
        """For each sentence the beams [B,C]."""
        index = beams.unsqueeze(-1).expand(-1, -1, self.tokens.size(-1))
        return History(self.tokens.gather(1, index), self.token_scores.gather(1, index))

    def extended(self, candidates: Candidates, length: int) -> History:
        """The parents' histories with the candidates' tokens at position `length`."""
        grown = self.select(candidates.parents)
        grown.tokens[..., length] = candidates.tokens
        grown.token_scores[..., length] = candidates.token_scores
        return grown

    def joined(self, other: History) -> History:
        """Both, side by side."""
        return History(*(torch.cat(pair, dim=1) for pair in zip(self, other, strict=True)))

    def keep(self, sentences: Tensor) -> History:
        """Only some of the sentences."""
        return History(*(part[sentences] for part in self))


class Beams:
    """Hypotheses of B sentences: starts with one empty beam each, ends with results for all."""

    def __init__(self, limits_B: Tensor, options: DecodingOptions) -> None:
        self.options = options
        self.width = options.n_best if options.sampling else options.beam
        self.length = 0
        """Tokens written so far, the same for all live hypotheses."""
        self.limits_B = limits_B
        self.sentences_B = torch.arange(len(limits_B), device=limits_B.device)
        """Which sentences of the batch are still searched."""
        self.totals_BK = torch.zeros(len(limits_B), 1, device=limits_B.device)
        self.live = self._history(beams=1)
        self.finished = self._history(beams=options.n_best)
        self.finished_lengths_BN = torch.zeros_like(self.finished.tokens[..., 0])
        self.finished_scores_BN = torch.full_like(self.finished.token_scores[..., 0], IMPOSSIBLE)
        self.results: list[list[Hypothesis]] = [[] for _ in limits_B]

    @property
    def written_BKT(self) -> Tensor:
        """The tokens of the live hypotheses."""
        return self.live.tokens[..., : self.length]

    def start_with(self, tokens_BT: Tensor, token_scores_BT: Tensor) -> None:
        """Give every sentence tokens that its hypotheses begin with."""
        self.length = tokens_BT.size(1)
        self.live.tokens[:, 0, : self.length] = tokens_BT
        self.live.token_scores[:, 0, : self.length] = token_scores_BT
        self.totals_BK[:, 0] = token_scores_BT.sum(1)

    def advance(self, ending: Candidates, continuing: Candidates) -> Tensor:
        """Move on by a token: some hypotheses finish, others are the live ones now, sentences that are done leave.

        Returns which rows [B,K] of the model's state the live hypotheses go on from; none when all is done.
        """
        beams_before = self.totals_BK.size(1)
        self._finish(ending)
        self.live = self.live.extended(continuing, self.length)
        self.totals_BK = continuing.totals
        self.length += 1
        first_rows_B = beams_before * torch.arange(len(self.sentences_B), device=self.sentences_B.device)
        rows_BK = first_rows_B.unsqueeze(1) + continuing.parents
        over_B = self._is_over()
        if bool(over_B.any()):
            self._retire(over_B)
            rows_BK = rows_BK[~over_B]
        return rows_BK

    def _finish(self, ending: Candidates) -> None:
        """Add complete hypotheses to the finished ones, of which the best N stay."""
        if bool((ending.totals == IMPOSSIBLE).all()):
            return
        lengths = torch.full_like(ending.tokens, self.length + 1)
        scores = torch.cat((self.finished_scores_BN, ending.totals / length_penalty(lengths, self.options)), 1)
        self.finished_scores_BN, best = scores.topk(self.options.n_best)
        self.finished = self.finished.joined(self.live.extended(ending, self.length)).select(best)
        self.finished_lengths_BN = torch.cat((self.finished_lengths_BN, lengths), 1).gather(1, best)

    def _retire(self, over_B: Tensor) -> None:
        """Write down the results of sentences whose search is over, and go on without them."""
        for index in over_B.nonzero().squeeze(1).tolist():
            self.results[int(self.sentences_B[index])] = self._hypotheses(index)
        stay = ~over_B
        self.sentences_B, self.limits_B, self.totals_BK = (
            self.sentences_B[stay],
            self.limits_B[stay],
            self.totals_BK[stay],
        )
        self.live, self.finished = self.live.keep(stay), self.finished.keep(stay)
        self.finished_lengths_BN = self.finished_lengths_BN[stay]
        self.finished_scores_BN = self.finished_scores_BN[stay]

    def _is_over(self) -> Tensor:
        """[B], True where no live hypothesis can still come among the best."""
        best_live_B = self.totals_BK.amax(1)
        worst_kept_B = self.finished_scores_BN[:, -1]
        if self.width == 1:  # greedy search and single samples follow one hypothesis to its end
            return (worst_kept_B > IMPOSSIBLE) | (best_live_B == IMPOSSIBLE)
        shortest_B = torch.full_like(self.limits_B, self.length + 1)
        reachable_B = upper_bound(best_live_B, shortest_B, self.limits_B, self.options)
        # An empty place among the finished scores −∞: anything alive can still take it.
        return reachable_B <= worst_kept_B

    def _hypotheses(self, index: int) -> list[Hypothesis]:
        return [
            Hypothesis(tokens[:length], score, sum(token_scores[:length]), token_scores[:length])
            for tokens, token_scores, length, score in zip(
                self.finished.tokens[index].tolist(),
                self.finished.token_scores[index].tolist(),
                self.finished_lengths_BN[index].tolist(),
                self.finished_scores_BN[index].tolist(),
                strict=True,
            )
            if score > IMPOSSIBLE
        ]

    def _history(self, beams: int) -> History:
        shape = (len(self.limits_B), beams, int(self.limits_B.max()))
        device = self.limits_B.device
        return History(torch.zeros(shape, dtype=torch.long, device=device), torch.zeros(shape, device=device))
