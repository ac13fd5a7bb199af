"""Label-smoothed cross-entropy (§5.4) and R-Drop, summed over real tokens, with the vocabulary projection inside.

Logits of a whole batch are the largest tensor of training by far: [tokens, vocabulary]. Here they exist for a chunk of
tokens at a time, and their gradient is taken at once, so that nothing of that size is ever kept.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor

__all__ = ["LossSum", "agreement", "smoothed_cross_entropy"]

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
    hidden_BTD: Tensor, weight_VD: Tensor, labels_BT: Tensor, pad_id: int, smoothing: float = 0.1
) -> LossSum:
    """Loss of decoder outputs against the tokens they should have predicted; padding does not count.

    The target is (1-ε) on the right token and ε spread evenly over the vocabulary, as in
    `torch.nn.functional.cross_entropy(label_smoothing=ε)`.
    """
    real = labels_BT != pad_id
    labels_N = labels_BT[real]
    loss, nll = _ProjectedLoss.apply(hidden_BTD[real], weight_VD, labels_N, smoothing)  # type: ignore[no-untyped-call]
    return LossSum(loss, nll, len(labels_N))


def agreement(one_BTD: Tensor, other_BTD: Tensor, weight_VD: Tensor, labels_BT: Tensor, pad_id: int) -> Tensor:
    """R-Drop: (KL(p‖q) + KL(q‖p)) / 2 of what two passes predict, summed over real tokens."""
    real = labels_BT != pad_id
    divergence: Tensor = _ProjectedDivergence.apply(one_BTD[real], other_BTD[real], weight_VD)  # type: ignore[no-untyped-call]
    return divergence


class _ProjectedLoss(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden_ND: Tensor, weight_VD: Tensor, labels_N: Tensor, smoothing: float) -> Any:
        needs_hidden, needs_weight = ctx.needs_input_grad[:2]
        hidden_grad = torch.empty_like(hidden_ND) if needs_hidden else None
        weight_grad = torch.zeros_like(weight_VD) if needs_weight else None
        loss, nll = hidden_ND.new_zeros(()), hidden_ND.new_zeros(())
        spread = smoothing / len(weight_VD)
        for start in range(0, len(labels_N), CHUNK):
            chunk = slice(start, start + CHUNK)
            hidden, labels = hidden_ND[chunk], labels_N[chunk].unsqueeze(1)
            logits = hidden @ weight_VD.T
            normaliser = logits.logsumexp(-1, keepdim=True)
            right = logits.gather(1, labels)
            nll += (normaliser - right).sum()
            # -Σ q·log p with q = spread everywhere and 1-ε more on the right token
            loss += normaliser.sum() - (1 - smoothing) * right.sum()
            if smoothing:
                loss -= spread * logits.sum()
            if not (needs_hidden or needs_weight):
                continue
            gradient = logits.sub_(normaliser).exp_()  # softmax; then minus q
            if smoothing:
                gradient -= spread
            gradient.scatter_add_(1, labels, torch.full_like(right, smoothing - 1))
            if hidden_grad is not None:
                torch.mm(gradient, weight_VD, out=hidden_grad[chunk])
            if weight_grad is not None:
                weight_grad.addmm_(gradient.T, hidden)
        ctx.save_for_backward(hidden_grad, weight_grad)
        ctx.mark_non_differentiable(nll)
        return loss, nll

    @staticmethod
    def backward(ctx: Any, loss_grad: Tensor, _: Tensor) -> Any:
        hidden_grad, weight_grad = ctx.saved_tensors
        return (
            None if hidden_grad is None else hidden_grad * loss_grad,
            None if weight_grad is None else weight_grad * loss_grad,
            None,
            None,
        )


class _ProjectedDivergence(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, one_ND: Tensor, other_ND: Tensor, weight_VD: Tensor) -> Any:
        gradients = [torch.empty_like(one_ND), torch.empty_like(other_ND), torch.zeros_like(weight_VD)]
        total = one_ND.new_zeros(())
        for start in range(0, len(one_ND), CHUNK):
            chunk = slice(start, start + CHUNK)
            log_p, log_q = ((hidden[chunk] @ weight_VD.T).log_softmax(-1) for hidden in (one_ND, other_ND))
            p, q, ratio = log_p.exp(), log_q.exp(), log_p - log_q
            forward, backward = (p * ratio).sum(-1, keepdim=True), -(q * ratio).sum(-1, keepdim=True)
            total += (forward + backward).sum() / 2
            # d KL(p‖q) / d logits of p = p·(ratio - KL(p‖q)), and of q = q - p; the other direction mirrors it.
            for_p = (p * (ratio - forward) + p - q) / 2
            for_q = (q * (-ratio - backward) + q - p) / 2
            torch.mm(for_p, weight_VD, out=gradients[0][chunk])
            torch.mm(for_q, weight_VD, out=gradients[1][chunk])
            gradients[2].addmm_(for_p.T, one_ND[chunk]).addmm_(for_q.T, other_ND[chunk])
        ctx.save_for_backward(*gradients)
        return total

    @staticmethod
    def backward(ctx: Any, total_grad: Tensor) -> Any:
        return tuple(gradient * total_grad for gradient in ctx.saved_tensors)
