"""Starting values: what lets the published post-norm network train at the published depth, and deeper.

The paper does not say how it drew its weights. Its code, and most since, draws matrices by Glorot and Bengio's rule
("Xavier") and embeddings with variance 1/d_model, so that √d_model · E has unit variance. In deep post-norm stacks
every normalisation then shrinks the gradient that comes down the residual path. Drawing layer l smaller by 1/√l (Zhang
et al., 2019, depth-scaled initialisation) keeps that path dominant: docs/log.md shows it at 6, 12 and 18 layers.
"""

from __future__ import annotations

import math

import torch
from torch import nn

from transduce.model.attention import MultiHeadAttention
from transduce.model.config import TransformerConfig

__all__ = ["initialise"]


def initialise(model: nn.Module, config: TransformerConfig) -> None:
    """Draw all weights of a model from torch's random generator: its stacks of layers, then its tables."""
    scaled = _scales_by_depth(config)
    in_layers = set()
    for stack in (module for module in model.modules() if isinstance(module, nn.ModuleList)):
        for depth, layer in enumerate(stack, start=1):
            _draw_layer(layer, gain=1 / math.sqrt(depth) if scaled else 1.0)
        in_layers |= set(stack.parameters())
    for parameter in model.parameters():
        # What is left are token, position and distance tables. Without storage there is nothing to draw.
        if parameter not in in_layers and parameter.dim() == 2 and not parameter.is_meta:
            nn.init.normal_(parameter, std=config.d_model**-0.5)
    for linear in (module for module in model.modules() if isinstance(module, nn.Linear)):
        if linear.bias is not None and linear.bias not in in_layers:
            nn.init.zeros_(linear.bias)


def _scales_by_depth(config: TransformerConfig) -> bool:
    if config.initialisation == "auto":
        return config.norm_position == "post"
    return config.initialisation == "depth_scaled"


def _draw_layer(layer: nn.Module, gain: float) -> None:
    for linear in (module for module in layer.modules() if isinstance(module, nn.Linear)):
        nn.init.xavier_uniform_(linear.weight, gain)
        if linear.bias is not None:
            nn.init.zeros_(linear.bias)
    for attention in (module for module in layer.modules() if isinstance(module, MultiHeadAttention)):
        for matrix in torch.split(attention.qkv.weight, attention.widths):  # W^Q, W^K and W^V each by its own size
            nn.init.xavier_uniform_(matrix, gain)
