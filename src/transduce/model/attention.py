"""Scaled dot-product attention (§3.2.1, equation 1) and multi-head attention (§3.2.2).

Shapes: B batch, T queries, S keys, D model, H heads, G key-value heads, K head (d_k or d_v).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.errors import InputError
from transduce.model.cache import KeyValueCache, KeyValues
from transduce.model.config import TransformerConfig
from transduce.model.dropout import dropout as drop
from transduce.model.positions import Rotation, rotate

__all__ = ["MultiHeadAttention", "Pattern", "attention", "attention_weights"]

FUSED_FROM_KEYS = 192
"""On a CPU the plain equation wins below about this many keys (measured: docs/log.md); elsewhere fusing always does."""


def attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    mask: Tensor | None = None,
    bias: Tensor | None = None,
    dropout: float = 0.0,
) -> Tensor:
    """Equation 1: Attention(Q, K, V) = softmax(QKᵀ / √d_k) V.

    query [..., T, d_k], key [..., S, d_k], value [..., S, d_v] give [..., T, d_v]. `mask` is True where a query
    may look, `bias` is added to the scores, `dropout` drops weights. A query that may look nowhere gets zeros.
    """
    return drop(attention_weights(query, key, mask, bias), dropout) @ value


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None = None, bias: Tensor | None = None) -> Tensor:
    """softmax(QKᵀ / √d_k), [..., T, S]: each query's share of attention over the keys."""
    scores = (query / math.sqrt(query.size(-1))) @ key.transpose(-2, -1)  # dividing the smaller of the two
    if bias is not None:
        scores = scores + bias
    if mask is None:
        return scores.softmax(-1)
    if mask.dtype != torch.bool:
        raise InputError(
            f"the attention mask is of type {mask.dtype}.",
            remedy="Give booleans, True where a query may look; numbers to add to the scores are the bias.",
        )
    # −∞ as the lowest finite number: a row masked as a whole must give no NaN, not even as gradient. Adding it
    # is faster than filling, because the mask is smaller than the scores and adding has nothing to undo.
    illegal = torch.zeros_like(mask, dtype=scores.dtype).masked_fill_(~mask, torch.finfo(scores.dtype).min)
    weights = (scores + illegal).softmax(-1)
    may_look = mask.any(-1, keepdim=True)
    return weights if bool(may_look.all()) else weights * may_look


@dataclass(frozen=True)
class Pattern:
    """Who may look at whom and how distance counts: made once per forward pass, used by every layer of a stack."""

    mask: Tensor | None = None
    """True where a query may look; broadcasts to [B,H,T,S]."""
    bias: Tensor | None = None
    """Added to the scores, [H,T,S]: relative and alibi positions."""
    rotation: Rotation | None = None
    """Turns queries and keys: rotary positions."""
    causal: bool = False
    """Whether `mask` is exactly the causal mask, for which fused kernels have a faster way."""


class MultiHeadAttention(nn.Module):
    """MultiHead(Q, K, V) = Concat(head₁ … head_h) Wᴼ with headᵢ = Attention(QWᵢ^Q, KWᵢ^K, VWᵢ^V).

    W^Q, W^K and W^V of all heads lie in one matrix, `qkv`, because one large product is faster than three.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads, self.groups = config.heads, config.key_value_groups
        self.d_k, self.d_v = config.key_width, config.value_width
        self.dropout = config.attention_dropout
        self.widths = [self.heads * self.d_k, self.groups * self.d_k, self.groups * self.d_v]  # of Q, K, V
        self.qkv = nn.Linear(config.d_model, sum(self.widths), bias=config.attention_bias)
        self.output = nn.Linear(self.heads * self.d_v, config.d_model, bias=config.attention_bias)

    def forward(
        self,
        x_BTD: Tensor,
        pattern: Pattern,
        memory: KeyValues | None = None,
        cache: KeyValueCache | None = None,
        record: list[Tensor] | None = None,
    ) -> Tensor:
        """Attend to `memory`, or without it to `x_BTD` itself (and to what `cache` holds of earlier steps).

        With `record`, the weights [B,H,T,S] are appended to it and the plain equation is used. `x_BTD` may have
        several rows (beams) for each sentence of `memory`: they become further queries of that sentence.
        """
        if memory is None:
            query, key, value = self._self_projections(x_BTD, pattern, cache)
        else:
            query = self._split_heads(self._project_query(self._fold_beams(x_BTD, memory)), self.heads)
            key, value = memory
        if self.groups != self.heads:
            key = key.repeat_interleave(self.heads // self.groups, dim=1)
            value = value.repeat_interleave(self.heads // self.groups, dim=1)
        heads_BHTK = self._attend(query, key, value, pattern, record)
        concatenated: Tensor = self.output(heads_BHTK.transpose(1, 2).flatten(2))
        return concatenated.view(x_BTD.shape)

    def keys_and_values(self, memory_BSD: Tensor) -> KeyValues:
        """The keys and values of an encoder's output: computed once per sentence, used at every step."""
        q = self.widths[0]
        bias = None if self.qkv.bias is None else self.qkv.bias[q:]
        projected = F.linear(memory_BSD, self.qkv.weight[q:], bias)
        key, value = torch.split(projected, self.widths[1:], dim=-1)
        return KeyValues(self._split_heads(key, self.groups), self._split_heads(value, self.groups))

    def _self_projections(
        self, x_BTD: Tensor, pattern: Pattern, cache: KeyValueCache | None
    ) -> tuple[Tensor, Tensor, Tensor]:
        query, key, value = torch.split(self.qkv(x_BTD), self.widths, dim=-1)
        query = self._split_heads(query, self.heads)
        key, value = self._split_heads(key, self.groups), self._split_heads(value, self.groups)
        if pattern.rotation is not None:
            query, key = rotate(query, pattern.rotation), rotate(key, pattern.rotation)
        if cache is not None:
            key, value = cache.append(key, value)
        return query, key, value

    def _project_query(self, x_BTD: Tensor) -> Tensor:
        q = self.widths[0]
        return F.linear(x_BTD, self.qkv.weight[:q], None if self.qkv.bias is None else self.qkv.bias[:q])

    def _attend(
        self, query: Tensor, key: Tensor, value: Tensor, pattern: Pattern, record: list[Tensor] | None
    ) -> Tensor:
        dropout = self.dropout if self.training else 0.0
        if record is not None:
            record.append(attention_weights(query, key, pattern.mask, pattern.bias))
            return drop(record[-1], dropout) @ value
        if query.device.type == "cpu" and (key.size(2) < FUSED_FROM_KEYS or dropout):  # fused dropout is slow there
            return attention(query, key, value, pattern.mask, pattern.bias, dropout)
        return _fused_attention(query, key, value, pattern, dropout)

    @staticmethod
    def _fold_beams(x_BTD: Tensor, memory: KeyValues) -> Tensor:
        # Queries of a cross-attention do not see each other, so beams may stand side by side as one sequence.
        return x_BTD.reshape(memory.keys.size(0), -1, x_BTD.size(-1))

    @staticmethod
    def _split_heads(x_BTW: Tensor, heads: int) -> Tensor:
        return x_BTW.view(*x_BTW.shape[:2], heads, -1).transpose(1, 2)  # [B,T,W] → [B,H,T,K]


def _fused_attention(query: Tensor, key: Tensor, value: Tensor, pattern: Pattern, dropout: float) -> Tensor:
    """Equation 1 by PyTorch's fused kernel, which never holds the weights; a test holds the two together."""
    if pattern.causal and pattern.bias is None:
        return F.scaled_dot_product_attention(query, key, value, dropout_p=dropout, is_causal=True)
    mask = pattern.mask
    if pattern.bias is not None:
        bias = pattern.bias.to(query.dtype)
        mask = bias if mask is None else bias.masked_fill(~mask, float("-inf"))
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask, dropout_p=dropout)
