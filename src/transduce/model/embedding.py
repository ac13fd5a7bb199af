"""From ids to vectors: token embedding times √d_model, plus position, then dropout (§3.4, §3.5, §5.4)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from transduce.model.config import TransformerConfig
from transduce.model.dropout import Dropout
from transduce.model.layers import make_norm
from transduce.model.positions import make_added_positions

__all__ = ["Embedding", "token_table"]


class Embedding(nn.Module):
    """Dropout(√d_model · E[ids] + PE), normalised first if the config says so. Several may share one token matrix E."""

    def __init__(self, config: TransformerConfig, tokens: nn.Embedding) -> None:
        super().__init__()
        self.tokens = tokens
        self.scale = math.sqrt(config.d_model) if config.scale_embeddings else 1.0
        self.positions = make_added_positions(config)
        self.norm = make_norm(config) if config.embedding_norm else nn.Identity()
        self.dropout = Dropout(config.dropout)

    def forward(self, ids_BT: Tensor, start: int = 0) -> Tensor:
        """[B,T,D] for ids that stand at positions start … start+T-1."""
        x_BTD: Tensor = self.tokens(ids_BT) * self.scale
        if self.positions is not None:
            x_BTD = self.positions(x_BTD, start)
        y_BTD: Tensor = self.dropout(self.norm(x_BTD))
        return y_BTD


def token_table(size: int, d_model: int) -> nn.Embedding:
    """An undrawn embedding: `initialise` draws it, and drawing 37,000 × 512 numbers twice takes time."""
    return nn.Embedding(size, d_model, _weight=torch.empty(size, d_model))
