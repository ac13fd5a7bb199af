"""The paper's own figures beside what this code gives: Table 1, Table 3, equation 3, and the layers of Figure 1.

Parameters are counted by building each model on torch's meta device, which allocates nothing.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.overrides import TorchFunctionMode

from transduce.errors import ConfigError
from transduce.model.attention import MultiHeadAttention, attention
from transduce.model.config import TransformerConfig
from transduce.model.decoder import Decoder
from transduce.model.encoder import Encoder
from transduce.model.feedforward import FeedForward
from transduce.model.transformer import Transformer
from transduce.training.schedule import noam

__all__ = [
    "TABLE_3",
    "LayerCount",
    "LayerKind",
    "LearningRate",
    "Variation",
    "VariationCount",
    "count_parameters",
    "layer_counts",
    "learning_rates",
    "table_1",
    "table_3",
]

VOCABULARY = 37_000
"""The paper's shared vocabulary for English–German: "about 37000 tokens" (§5.1)."""
LONGEST = 4096
"""Sequence length up to which attention is run to count its multiplications."""


@dataclass(frozen=True)
class Variation:
    """One row of Table 3, as published."""

    row: str
    change: str
    perplexity: float
    bleu: float
    millions: int | None = None
    """Parameters as printed; None where the paper leaves the field blank, as in the base model."""
    overrides: dict[str, Any] = field(default_factory=dict)
    preset: str = "base"


TABLE_3 = (
    Variation("base", "", 4.92, 25.8, 65),
    Variation("A", "h=1", 5.29, 24.9, None, {"heads": 1}),
    Variation("A", "h=4", 5.00, 25.5, None, {"heads": 4}),
    Variation("A", "h=16", 4.91, 25.8, None, {"heads": 16}),
    Variation("A", "h=32", 5.01, 25.4, None, {"heads": 32}),
    Variation("B", "d_k=16", 5.16, 25.1, 58, {"d_k": 16}),
    Variation("B", "d_k=32", 5.01, 25.4, 60, {"d_k": 32}),
    Variation("C", "N=2", 6.11, 23.7, 36, {"encoder_layers": 2, "decoder_layers": 2}),
    Variation("C", "N=4", 5.19, 25.3, 50, {"encoder_layers": 4, "decoder_layers": 4}),
    Variation("C", "N=8", 4.88, 25.5, 80, {"encoder_layers": 8, "decoder_layers": 8}),
    Variation("C", "d_model=256", 5.75, 24.5, 28, {"d_model": 256}),
    Variation("C", "d_model=1024", 4.66, 26.0, 168, {"d_model": 1024}),
    Variation("C", "d_ff=1024", 5.12, 25.4, 53, {"d_ff": 1024}),
    Variation("C", "d_ff=4096", 4.75, 26.2, 90, {"d_ff": 4096}),
    Variation("D", "P_drop=0.0", 5.77, 24.6, None, {"dropout": 0.0}),
    Variation("D", "P_drop=0.2", 4.95, 25.5, None, {"dropout": 0.2}),
    Variation("D", "ε_ls=0.0", 4.67, 25.3),
    Variation("D", "ε_ls=0.2", 5.47, 25.7),
    Variation("E", "learned positions", 4.92, 25.7, None, {"positions": "learned"}),
    Variation("big", "", 4.33, 26.4, 213, preset="big"),
)


@dataclass(frozen=True)
class VariationCount:
    """A row of Table 3 with the parameters counted here."""

    row: str
    change: str
    parameters: int
    """Counted."""
    difference: int
    """Counted, from the base model."""
    paper_millions: int
    """Printed in the paper."""
    paper_difference: int
    """Printed, from the base model, in millions."""
    paper_perplexity: float
    paper_bleu: float


@dataclass(frozen=True)
class LearningRate:
    """A point of equation 3."""

    model: str
    step: int
    rate: float
    """As `noam` gives it."""
    by_hand: float
    """Worked out from the equation on paper, to five digits."""


@dataclass(frozen=True)
class LayerCount:
    """How often a part of Figure 1 occurs in the base model as it is built."""

    part: str
    counted: int
    paper: int
    parameters_each: int


@dataclass(frozen=True)
class LayerKind:
    """A row of Table 1."""

    kind: str
    complexity: str
    operations: int
    """The complexity at the given n, d, k and r."""
    sequential: str
    path: str
    counted: int | None = None
    """Multiplications that our code does per layer, counted; None where the kind is not built here."""


def count_parameters(config: TransformerConfig) -> int:
    """Exact number of parameters, tied ones once; nothing is allocated."""
    return _count(_built(config))


def table_3(vocab_size: int = VOCABULARY) -> list[VariationCount]:
    """Every row of Table 3 with its exact number of parameters."""
    base = count_parameters(TransformerConfig.base(vocab_size))
    base_millions = 65
    rows = []
    for published in TABLE_3:
        preset = TransformerConfig.big if published.preset == "big" else TransformerConfig.base
        parameters = count_parameters(preset(vocab_size, **published.overrides))
        millions = published.millions if published.millions is not None else base_millions
        rows.append(
            VariationCount(
                row=published.row,
                change=published.change,
                parameters=parameters,
                difference=parameters - base,
                paper_millions=millions,
                paper_difference=millions - base_millions,
                paper_perplexity=published.perplexity,
                paper_bleu=published.bleu,
            )
        )
    return rows


def learning_rates() -> list[LearningRate]:
    """Equation 3 with 4,000 warm-up steps, at its start, its peak and the end of training."""
    return [
        LearningRate("base", 1, noam(1, d_model=512), by_hand=1.7469e-7),
        LearningRate("base", 4_000, noam(4_000, d_model=512), by_hand=6.9877e-4),
        LearningRate("base", 100_000, noam(100_000, d_model=512), by_hand=1.3975e-4),
        LearningRate("big", 4_000, noam(4_000, d_model=1024), by_hand=4.9411e-4),
    ]


def layer_counts(vocab_size: int = VOCABULARY) -> list[LayerCount]:
    """The parts of the base model: 6 + 6 layers, with 2 and 3 sub-layers each (§3.1)."""
    model = _built(TransformerConfig.base(vocab_size))

    def parts(stack: nn.Module, kind: type[nn.Module]) -> list[nn.Module]:
        return [module for module in stack.modules() if isinstance(module, kind)]

    def row(part: str, modules: list[nn.Module], paper: int) -> LayerCount:
        return LayerCount(part, len(modules), paper, _count(modules[0]))

    encoder, decoder = model.encoder, model.decoder
    assert isinstance(encoder, Encoder)
    assert isinstance(decoder, Decoder)
    return [
        row("encoder layers", list(encoder.layers), paper=6),
        row("  self-attentions", parts(encoder, MultiHeadAttention), paper=6),
        row("  feed-forward networks", parts(encoder, FeedForward), paper=6),
        row("decoder layers", list(decoder.layers), paper=6),
        row("  self- and cross-attentions", parts(decoder, MultiHeadAttention), paper=12),
        row("  feed-forward networks", parts(decoder, FeedForward), paper=6),
    ]


def table_1(length: int = 30, d_model: int = 512, kernel: int = 3, neighbours: int = 10) -> list[LayerKind]:
    """Complexity per layer at sequence length n, width d, kernel k and neighbourhood r."""
    for name, value in (("length", length), ("d_model", d_model), ("kernel", kernel), ("neighbours", neighbours)):
        if value < 1:
            raise ConfigError(f"{name}={value} is too small.", remedy="It must be at least 1.")
    if length > LONGEST:
        raise ConfigError(
            f"length={length} is too long: its n² attention weights are really computed, to be counted.",
            remedy=f"Use at most {LONGEST}.",
        )
    n, d, k, r = length, d_model, kernel, neighbours
    return [
        LayerKind("self-attention", "n²·d", n * n * d, "1", "1", _attention_multiplications(n, d)),
        LayerKind("recurrent", "n·d²", n * d * d, "n", "n"),
        LayerKind("convolutional", "k·n·d²", k * n * d * d, "1", "log_k(n)"),
        LayerKind("restricted attention", "r·n·d", r * n * d, "1", "n/r"),
    ]


def _attention_multiplications(length: int, width: int) -> int:
    """What the matrix products of `attention` multiply, counted while it runs."""
    sequence = torch.zeros(length, width)
    count = _MultiplicationCount()
    with count:
        attention(sequence, sequence, sequence)
    return count.total


class _MultiplicationCount(TorchFunctionMode):
    """Adds up n·m·k for every product of [n,m] and [m,k] inside it."""

    total = 0

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if func in (torch.matmul, torch.Tensor.matmul, torch.Tensor.__matmul__):
            left, right = args
            self.total += left.numel() * right.size(-1)
        return func(*args, **(kwargs or {}))


def _built(config: TransformerConfig) -> Transformer:
    with torch.device("meta"):
        return Transformer(config)


def _count(module: nn.Module) -> int:
    return sum(parameter.numel() for parameter in module.parameters())
