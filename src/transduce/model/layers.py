"""One layer of the encoder and one of the decoder (§3.1, Figure 1)."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor, nn

from transduce.model.attention import MultiHeadAttention, Pattern
from transduce.model.cache import KeyValueCache, KeyValues
from transduce.model.config import TransformerConfig
from transduce.model.dropout import Dropout
from transduce.model.feedforward import FeedForward

__all__ = ["DecoderLayer", "EncoderLayer", "Residual", "make_norm"]


def make_norm(config: TransformerConfig) -> nn.Module:
    """The normalisation that the config asks for."""
    kind = nn.LayerNorm if config.norm == "layer" else nn.RMSNorm
    return kind(config.d_model, eps=config.norm_epsilon)


class Residual(nn.Module):
    """What surrounds every sub-layer: a residual connection, dropout and normalisation.

    post (the paper): LayerNorm(x + Dropout(Sublayer(x)))
    pre:              x + Dropout(Sublayer(LayerNorm(x)))
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.norm = make_norm(config)
        self.dropout = Dropout(config.dropout)
        self.pre = config.norm_position == "pre"

    def forward(self, x: Tensor, sublayer: Callable[[Tensor], Tensor]) -> Tensor:
        """The sub-layer's output added to its input."""
        y: Tensor
        if self.pre:
            y = x + self.dropout(sublayer(self.norm(x)))
        else:
            y = self.norm(x + self.dropout(sublayer(x)))
        return y


class EncoderLayer(nn.Module):
    """Self-attention, then the feed-forward network: a layer of the encoder, and of a decoder that stands alone."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.attention_residual = Residual(config)
        self.feedforward = FeedForward(config)
        self.feedforward_residual = Residual(config)

    def forward(
        self,
        x_BSD: Tensor,
        pattern: Pattern,
        record: list[Tensor] | None = None,
        cache: KeyValueCache | None = None,
    ) -> Tensor:
        """[B,S,D] to [B,S,D]; attention weights go to `record` if given.

        With `cache`, as a language model steps, x holds only the new positions.
        """
        x_BSD = self.attention_residual(x_BSD, lambda x: self.attention(x, pattern, cache=cache, record=record))
        y_BSD: Tensor = self.feedforward_residual(x_BSD, self.feedforward)
        return y_BSD


class DecoderLayer(nn.Module):
    """Masked self-attention, attention over the encoder's output, then the feed-forward network."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.attention = MultiHeadAttention(config)
        self.attention_residual = Residual(config)
        self.cross_attention = MultiHeadAttention(config)
        self.cross_attention_residual = Residual(config)
        self.feedforward = FeedForward(config)
        self.feedforward_residual = Residual(config)

    def forward(
        self,
        x_BTD: Tensor,
        pattern: Pattern,
        memory: KeyValues,
        memory_pattern: Pattern,
        cache: KeyValueCache | None = None,
        record: list[Tensor] | None = None,
        cross_record: list[Tensor] | None = None,
    ) -> Tensor:
        """[B,T,D] to [B,T,D], reading the keys and values of the encoder's output.

        With `cache`, x holds only the new positions; attention weights go to the records if given.
        """
        x_BTD = self.attention_residual(x_BTD, lambda x: self.attention(x, pattern, cache=cache, record=record))
        x_BTD = self.cross_attention_residual(
            x_BTD, lambda x: self.cross_attention(x, memory_pattern, memory=memory, record=cross_record)
        )
        y_BTD: Tensor = self.feedforward_residual(x_BTD, self.feedforward)
        return y_BTD
