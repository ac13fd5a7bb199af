"""How a model without recurrence is told the order of its input (§3.5), and what came after the paper.

Added to the embeddings:   sinusoidal (the paper's), learned
Inside self-attention:     rotary (turns queries and keys), relative and alibi (a bias on the scores)

Shapes: T queries, S keys, H heads, D model, K head.
"""

from __future__ import annotations

import math
from functools import lru_cache
from typing import NamedTuple

import torch
from torch import Tensor, nn

from transduce.errors import InputError
from transduce.model.config import TransformerConfig

__all__ = [
    "AlibiBias",
    "AttentionPositions",
    "LearnedPositions",
    "RelativeBias",
    "Rotation",
    "SinusoidalPositions",
    "alibi_slopes",
    "make_added_positions",
    "relative_bucket",
    "rotary_angles",
    "rotate",
    "sinusoidal_positions",
]


def sinusoidal_positions(length: int, d_model: int) -> Tensor:
    """The paper's positional encoding, [length, d_model], interleaved as printed.

    PE(pos, 2i)   = sin(pos / 10000^(2i / d_model))
    PE(pos, 2i+1) = cos(pos / 10000^(2i / d_model))
    """
    position = torch.arange(length, dtype=torch.float64).unsqueeze(1)
    even = torch.arange(0, d_model, 2, dtype=torch.float64)
    angle = position / 10000 ** (even / d_model)
    return torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


class SinusoidalPositions(nn.Module):
    """Adds the paper's positional encoding; any length, because the encoding is a formula."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.d_model = config.d_model

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """[B,T,D] at positions start … start+T-1."""
        end = start + x.size(1)
        table = _sinusoidal_table(_round_up(end), self.d_model, x.device, x.dtype)
        return x + table[start:end]


class LearnedPositions(nn.Module):
    """Adds a learned vector per position (Table 3 E); refuses positions past its table."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.max_length, config.d_model))

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """[B,T,D] at positions start … start+T-1."""
        end, limit = start + x.size(1), self.weight.size(0)
        if end > limit:
            raise InputError(
                f"a sequence of {end} tokens is longer than the {limit} learned positions of this model.",
                remedy="Split it, or train with a larger max_length or with positions='sinusoidal'.",
            )
        return x + self.weight[start:end]


class Rotation(NamedTuple):
    """Cosines and sines [T, K/2] that turn queries and keys at T consecutive positions."""

    cos: Tensor
    sin: Tensor


def rotary_angles(start: int, length: int, width: int, like: Tensor) -> Rotation:
    """The rotation of positions start … start+length-1 for heads of the given width (Su et al., 2021).

    Pair i of dimensions turns by pos / 10000^(2i / width): the frequencies of the paper's sinusoids.
    """
    table = _sinusoidal_table(_round_up(start + length), width, like.device, like.dtype)[start : start + length]
    return Rotation(cos=table[:, 1::2], sin=table[:, 0::2])


def rotate(x_BHTK: Tensor, rotation: Rotation) -> Tensor:
    """Turn each pair (x₂ᵢ, x₂ᵢ₊₁) by its position's angle; dot products then depend on distance only."""
    even, odd = x_BHTK[..., 0::2], x_BHTK[..., 1::2]
    cos, sin = rotation
    return torch.stack((even * cos - odd * sin, even * sin + odd * cos), dim=-1).flatten(-2)


class RelativeBias(nn.Module):
    """T5's relative positions: a learned bias per head and bucket of distance, one table for a whole stack."""

    def __init__(self, config: TransformerConfig, bidirectional: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(config.relative_buckets, config.heads))
        self.max_distance = config.relative_max_distance
        self.bidirectional = bidirectional

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Bias [H,T,S] for queries at T positions that look at keys at S positions."""
        distance_TS = key_positions[None, :] - query_positions[:, None]
        bucket_TS = relative_bucket(distance_TS, self.weight.size(0), self.max_distance, self.bidirectional)
        return self.weight[bucket_TS].permute(2, 0, 1)


def relative_bucket(distance: Tensor, buckets: int, max_distance: int, bidirectional: bool) -> Tensor:
    """T5's bucket of a distance (key minus query position).

    Half of the buckets hold one distance each, the other half grow logarithmically up to `max_distance`.
    Looking both ways halves the buckets again, one half for each direction; looking back only, the future
    (never seen) falls into bucket 0.
    """
    offset = torch.zeros_like(distance)
    if bidirectional:
        buckets //= 2
        offset = (distance > 0).long() * buckets
        back = distance.abs()
    else:
        back = (-distance).clamp(min=0)
    exact = buckets // 2
    far = torch.log(back.clamp(min=1).float() / exact) / math.log(max_distance / exact) * (buckets - exact)
    return offset + torch.where(back < exact, back, (exact + far.long()).clamp(max=buckets - 1))


class AlibiBias(nn.Module):
    """ALiBi (Press et al., 2022): scores fall linearly with distance, at a fixed slope per head.

    It was made for decoders, which only look back. In an encoder a step ahead counts half a step back: if both
    counted the same, a sentence and its mirror image would look alike.
    """

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads

    def forward(self, query_positions: Tensor, key_positions: Tensor) -> Tensor:
        """Bias [H,T,S] for queries at T positions that look at keys at S positions."""
        ahead_TS = key_positions[None, :] - query_positions[:, None]
        distance_TS = torch.where(ahead_TS > 0, ahead_TS / 2, -ahead_TS)
        slopes_H = torch.tensor(alibi_slopes(self.heads), device=distance_TS.device)
        return -slopes_H[:, None, None] * distance_TS


def alibi_slopes(heads: int) -> list[float]:
    """Slopes 2^(-8/h), 2^(-16/h), …; for other than powers of two, filled up from the next power's odd ones."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    between = [2 ** (-4 * (i + 1) / power) for i in range(0, 2 * power, 2)]
    return slopes + between[: heads - power]


class AttentionPositions(nn.Module):
    """What the self-attention of a stack knows of positions: a bias, a rotation, or (the paper) nothing."""

    def __init__(self, config: TransformerConfig, bidirectional: bool) -> None:
        super().__init__()
        self.bias: RelativeBias | AlibiBias | None = None
        if config.positions == "relative":
            self.bias = RelativeBias(config, bidirectional)
        elif config.positions == "alibi":
            self.bias = AlibiBias(config)
        self.rotary_width = config.key_width if config.positions == "rotary" else None

    def forward(self, start: int, end: int, like: Tensor) -> tuple[Tensor | None, Rotation | None]:
        """For queries at start … end-1 that look at keys at 0 … end-1: bias [H,T,S] and rotation."""
        bias = rotation = None
        if self.bias is not None:
            keys = torch.arange(end, device=like.device)
            bias = self.bias(keys[start:], keys).to(like.dtype)
        if self.rotary_width is not None:
            rotation = rotary_angles(start, end - start, self.rotary_width, like)
        return bias, rotation


def make_added_positions(config: TransformerConfig) -> SinusoidalPositions | LearnedPositions | None:
    """What is added to embeddings, or None for the kinds that work inside attention."""
    if config.positions == "sinusoidal":
        return SinusoidalPositions(config)
    return LearnedPositions(config) if config.positions == "learned" else None


def _round_up(length: int) -> int:
    """The next power of two, so that growing sequences do not build a table each."""
    return max(64, 1 << (length - 1).bit_length())


@lru_cache(maxsize=64)
def _sinusoidal_table(length: int, d_model: int, device: torch.device, dtype: torch.dtype) -> Tensor:
    # Made as an ordinary tensor even inside inference mode: training may use the same table later.
    with torch.inference_mode(False), torch.no_grad():
        return sinusoidal_positions(length, d_model).to(device=device, dtype=dtype)
