"""The position-wise feed-forward network (§3.3, equation 2) and its gated forms."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch.nn.functional as F
from torch import Tensor, nn

from transduce.model.config import Activation, TransformerConfig
from transduce.model.dropout import Dropout

__all__ = ["FeedForward"]

gelu_tanh = partial(F.gelu, approximate="tanh")

ACTIVATIONS: dict[Activation, tuple[Callable[[Tensor], Tensor], bool]] = {
    "relu": (F.relu, False),
    "gelu": (F.gelu, False),
    "gelu_tanh": (gelu_tanh, False),
    "silu": (F.silu, False),
    "reglu": (F.relu, True),
    "geglu": (F.gelu, True),
    "geglu_tanh": (gelu_tanh, True),
    "swiglu": (F.silu, True),
}
"""The function, and whether it gates a second projection."""


class FeedForward(nn.Module):
    """FFN(x) = max(0, xW₁ + b₁) W₂ + b₂, with other activations in place of max.

    Gated (Shazeer, 2020): (act(xW₁ + b₁) ⊙ (xV + c)) W₂ + b₂.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.activation, gated = ACTIVATIONS[config.activation]
        bias = config.feedforward_bias
        self.inner = nn.Linear(config.d_model, config.d_ff, bias=bias)
        self.gated = nn.Linear(config.d_model, config.d_ff, bias=bias) if gated else None
        self.outer = nn.Linear(config.d_ff, config.d_model, bias=bias)
        self.dropout = Dropout(config.activation_dropout)

    def forward(self, x: Tensor) -> Tensor:
        """Each position by itself: [..., D] to [..., D]."""
        hidden = self.activation(self.inner(x))
        if self.gated is not None:
            hidden = hidden * self.gated(x)
        y: Tensor = self.outer(self.dropout(hidden))
        return y
