"""The encoder: a stack of N layers over vectors, whatever they stand for."""

from __future__ import annotations

from torch import Tensor, nn

from transduce.model.attention import Pattern
from transduce.model.config import TransformerConfig
from transduce.model.layers import EncoderLayer, make_norm
from transduce.model.positions import AttentionPositions

__all__ = ["Encoder"]


class Encoder(nn.Module):
    """Maps x₁ … xₙ to z₁ … zₙ; each layer sees the whole input."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.layers = nn.ModuleList(EncoderLayer(config) for _ in range(config.encoder_layers))
        # Post-norm layers end in a normalisation of their own; pre-norm ones leave that to the stack.
        self.norm = make_norm(config) if config.norm_position == "pre" else nn.Identity()
        self.positions = AttentionPositions(config, bidirectional=True)

    def forward(self, x_BSD: Tensor, mask: Tensor | None = None, record: list[Tensor] | None = None) -> Tensor:
        """Encode embedded tokens [B,S,D]; `mask` [B,1,1,S] is True on real ones."""
        pattern = Pattern(mask, *self.positions(0, x_BSD.size(1), like=x_BSD))
        for layer in self.layers:
            x_BSD = layer(x_BSD, pattern, record)
        y_BSD: Tensor = self.norm(x_BSD)
        return y_BSD
