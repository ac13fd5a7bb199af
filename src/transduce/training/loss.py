"""Label-smoothed cross-entropy (§5.4) and R-Drop, summed over real tokens, with the vocabulary projection inside.

Logits of a whole batch are the largest tensor of training by far: [tokens, vocabulary]. Here they exist for a chunk of
tokens at a time, and their gradient is taken at once, so that nothing of that size is ever kept.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.training.candidates import candidates

__all__ = ["LossSum", "r_drop_loss", "regularised_loss", "smoothed_cross_entropy"]

CHUNK = 256
"""Tokens projected at a time: small enough to stay in the cache, large enough to keep the cores busy."""


class LossSum(NamedTuple):
    """Sums over real tokens, not means: what is divided by, and when, is for the loop to say."""

    loss: Tensor
    """Label-smoothed cross-entropy, with its gradient."""
    nll: Tensor
    """Plain negative log-likelihood, for perplexity; without gradient."""
    tokens: int


def smoothed_cross_entropy(
    hidden_BTD: Tensor, weight_VD: Tensor, labels_BT: Tensor, pad_id: int, smoothing: float = 0.1, sampled: int = 0
) -> LossSum:
    """Loss of decoder outputs against the tokens they should have predicted; padding does not count.

    The target is (1-ε) on the right token and ε spread evenly over the vocabulary, as in
    `torch.nn.functional.cross_entropy(label_smoothing=ε)`. With `sampled`, so many of the tokens that are right nowhere
    in the batch stand for all of these.
    """
    real = labels_BT != pad_id
    labels_N, weight, counts = _compared(labels_BT[real], weight_VD, sampled)
    loss, nll = _ProjectedLoss.apply(hidden_BTD[real], weight, labels_N, smoothing, counts)  # type: ignore[no-untyped-call]
    return LossSum(loss, nll, len(labels_N))


def regularised_loss(
    forward: Callable[[], Tensor],
    projection: nn.Linear,
    labels_BT: Tensor,
    pad_id: int,
    smoothing: float,
    r_drop: float,
    sampled: int = 0,
) -> LossSum:
    """Smoothed cross-entropy of what `forward` gives; with R-Drop of two such passes, and how far they are apart."""
    weight_VD = projection.weight
    if projection.bias is not None:  # xW + b is (x, 1) times W with b below it
        weight_VD = torch.cat((weight_VD, projection.bias.unsqueeze(1)), dim=1)

    def hidden() -> Tensor:
        x_BTD = forward().float()
        return x_BTD if projection.bias is None else F.pad(x_BTD, (0, 1), value=1.0)

    if not r_drop:
        return smoothed_cross_entropy(hidden(), weight_VD, labels_BT, pad_id, smoothing, sampled)
    return r_drop_loss(hidden(), hidden(), weight_VD, labels_BT, pad_id, smoothing, r_drop, sampled)


def r_drop_loss(
    one_BTD: Tensor,
    other_BTD: Tensor,
    weight_VD: Tensor,
    labels_BT: Tensor,
    pad_id: int,
    smoothing: float,
    r_drop: float,
    sampled: int = 0,
) -> LossSum:
    """R-Drop: the mean of two passes' losses, and `r_drop` times (KL(p‖q) + KL(q‖p)) / 2 of what they predict."""
    real = labels_BT != pad_id
    labels_N, weight, counts = _compared(labels_BT[real], weight_VD, sampled)
    loss, nll = _ProjectedAgreement.apply(  # type: ignore[no-untyped-call]
        one_BTD[real], other_BTD[real], weight, labels_N, smoothing, r_drop, counts
    )
    return LossSum(loss, nll, len(labels_N))


def _compared(labels_N: Tensor, weight_VD: Tensor, sampled: int) -> tuple[Tensor, Tensor, Tensor | None]:
    """Labels, weights and counts of the tokens that are compared: all, each counting once (None), or candidates."""
    if sampled and (few := candidates(labels_N, len(weight_VD), sampled)):
        return few.labels, weight_VD[few.ids], few.counts.to(weight_VD.dtype)
    return labels_N, weight_VD, None


class _ProjectedLoss(torch.autograd.Function):
    """With p = softmax(logits) and q = (1-ε)·[right token] + ε/V, the loss is -Σ q·log p and its gradient p - q.

    A row that counts n times is n rows with the same logit: together they have n times its exponential, and nε/V.

    Only p is ever as large as the logits: sums over the vocabulary of anything linear in the logits are taken of the
    weights first, and rows of p are divided by their sum where they are D wide and not V.
    """

    @staticmethod
    def forward(
        ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float, counts_V: Tensor | None
    ) -> Any:
        needs_hidden, needs_weight = ctx.needs_input_grad[:2]
        hidden_grad = torch.empty_like(hidden_ND) if needs_hidden else None
        weight_grad = torch.zeros_like(weight_VD) if needs_weight else None
        right_ND = weight_VD[labels_N]
        right_N = torch.linalg.vecdot(hidden_ND, right_ND)
        normaliser_N = torch.empty_like(right_N)
        log_counts_V = None if counts_V is None else counts_V.log()
        buffer = hidden_ND.new_empty(min(CHUNK, len(labels_N)), len(weight_VD))
        for start in range(0, len(labels_N), CHUNK):
            chunk = slice(start, start + CHUNK)
            hidden = hidden_ND[chunk]
            logits = torch.mm(hidden, weight_VD.T, out=buffer[: len(hidden)])
            if log_counts_V is not None:
                logits += log_counts_V
            largest = logits.amax(-1, keepdim=True)
            powers = logits.sub_(largest).exp_()
            total = powers.sum(-1, keepdim=True)
            normaliser_N[chunk] = (largest + total.log()).squeeze(1)
            if hidden_grad is not None:
                torch.mm(powers, weight_VD, out=hidden_grad[chunk]).div_(total)
            if weight_grad is not None:
                weight_grad.addmm_(powers.T, hidden / total)
        nll = (normaliser_N - right_N).sum()
        counts_V = weight_VD.new_ones(len(weight_VD)) if counts_V is None else counts_V
        spread, summed_weight, summed_hidden = smoothing / counts_V.sum().item(), counts_V @ weight_VD, hidden_ND.sum(0)
        loss = normaliser_N.sum() - (1 - smoothing) * right_N.sum() - spread * summed_hidden.dot(summed_weight)
        if hidden_grad is not None:
            hidden_grad.sub_(right_ND, alpha=1 - smoothing).sub_(summed_weight, alpha=spread)
        if weight_grad is not None:
            weight_grad.addr_(counts_V, summed_hidden, alpha=-spread).index_add_(
                0, labels_N, hidden_ND, alpha=smoothing - 1
            )
        ctx.save_for_backward(hidden_grad, weight_grad)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, loss_grad: Tensor, _: Tensor) -> Any:
        hidden_grad, weight_grad = ctx.saved_tensors
        return (
            None if hidden_grad is None else hidden_grad * loss_grad,
            None if weight_grad is None else weight_grad * loss_grad,
            *(None,) * 3,
        )


class _ProjectedAgreement(torch.autograd.Function):
    """Two passes' losses and how far p and q, what they predict, are apart: J = Σ (p - q)·r / 2 with r = log p/q.

    By the logits of p the gradient of the mean loss is p/2 less the target's half, and that of J is
    (p·(r - KL(p‖q)) + p - q) / 2; the other pass mirrors it. With w, the weight of J, all of it that is as large as the
    logits is w/2·(p·(r + 1/w + 1 - KL(p‖q)) - q): one tensor for each pass, and the target's part is added where it
    is D wide.
    """

    @staticmethod
    def forward(
        ctx: Any,
        one_ND: Tensor,
        other_ND: Tensor,
        weight_VD: Tensor,
        labels_N: Tensor,
        smoothing: float,
        r_drop: float,
        counts_V: Tensor | None,
    ) -> Any:
        one_grad, other_grad = torch.empty_like(one_ND), torch.empty_like(other_ND)
        weight_grad = torch.zeros_like(weight_VD)
        counts_V = weight_VD.new_ones(len(weight_VD)) if counts_V is None else counts_V
        log_counts_V = counts_V.log()
        spread, own = smoothing / counts_V.sum().item(), 1 / r_drop + 1
        loss, nll = one_ND.new_zeros(()), one_ND.new_zeros(())
        for start in range(0, len(labels_N), CHUNK):
            chunk = slice(start, start + CHUNK)
            one, other, labels = one_ND[chunk], other_ND[chunk], labels_N[chunk, None]
            log_p, log_q = (
                F.log_softmax(torch.addmm(log_counts_V, hidden, weight_VD.T), -1) for hidden in (one, other)
            )
            right = log_p.gather(1, labels).sum()
            nll -= right
            loss -= (1 - smoothing) / 2 * (right + log_q.gather(1, labels).sum())
            loss -= spread / 2 * ((log_p + log_q) @ counts_V).sum()
            ratio, p, q = log_p - log_q, log_p.exp_(), log_q.exp_()
            p_from_q, q_from_p = torch.linalg.vecdot(p, ratio)[:, None], -torch.linalg.vecdot(q, ratio)[:, None]
            loss += r_drop / 2 * (p_from_q + q_from_p).sum()
            # Both with the other sign, which w/2 takes back below: nothing V wide is turned round for its own sake.
            for_p = torch.addcmul(q, p, ratio + (own - p_from_q), value=-1)
            for_q = torch.addcmul(p, q, ratio.sub_(own - q_from_p))
            torch.mm(for_p, weight_VD, out=one_grad[chunk])
            torch.mm(for_q, weight_VD, out=other_grad[chunk])
            weight_grad.addmm_(for_p.T, one).addmm_(for_q.T, other)
        loss += smoothing * len(labels_N) * torch.dot(counts_V, log_counts_V) / counts_V.sum()  # p is that of n rows
        both_ND, right_ND, summed_weight = one_ND + other_ND, weight_VD[labels_N], counts_V @ weight_VD
        for gradient in (one_grad, other_grad):
            gradient.mul_(-r_drop / 2).sub_(right_ND, alpha=(1 - smoothing) / 2).sub_(summed_weight, alpha=spread / 2)
        weight_grad.mul_(-r_drop / 2).addr_(counts_V, both_ND.sum(0), alpha=-spread / 2)
        weight_grad.index_add_(0, labels_N, both_ND, alpha=(smoothing - 1) / 2)
        ctx.save_for_backward(one_grad, other_grad, weight_grad)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, loss_grad: Tensor, _: Tensor) -> Any:
        return *(gradient * loss_grad for gradient in ctx.saved_tensors), *(None,) * 4
