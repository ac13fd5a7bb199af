"""Other shapes in which a network computes the same: by which a class that lacks something of ours can hold it.

- Biases that are not there are zeros.
- Embeddings that are multiplied by √d_model are written multiplied; a matrix that was tied to them is then its own.
- A bias of the logits can be a part of the output's matrix where a LayerNorm stands before it: what that gives has
  no mean, so that of its numbers, each divided by its weight of the norm, the sum is known beforehand.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import product
from typing import Any, cast

import torch
from torch import Tensor, nn

from transduce.errors import ConfigError
from transduce.model import TransformerConfig

__all__ = ["BIASES", "equivalent_shapes", "in_shape"]

BIASES = ("attention_bias", "feedforward_bias", "logits_bias")
SMALLEST_WEIGHT = 1e-3
"""Of a norm, by which something is divided."""


def equivalent_shapes(config: TransformerConfig, network: str) -> Iterator[TransformerConfig]:
    """The shapes that `in_shape` can give a network, its own first."""
    normed = config.norm == "layer" and config.norm_position == "pre" and network in ("transformer", "decoder-only")
    for unscaled, folded in product((False, True), repeat=2):
        if (unscaled and (not config.scale_embeddings or network == "vision")) or (
            folded and not (config.logits_bias and normed)
        ):
            continue
        changed: dict[str, Any] = {}
        if (unscaled or folded) and config.ties_output:
            changed["tying"] = "embeddings" if config.tying == "all" and network == "transformer" else "none"
        changed |= {"scale_embeddings": False} if unscaled else {}
        changed |= {"logits_bias": False} if folded else {}
        shape = config.replace(**changed)
        for added in ((), BIASES[:2], () if folded else BIASES):
            yield shape.replace(**dict.fromkeys(added, True))


@torch.no_grad()
def in_shape(model: nn.Module, config: TransformerConfig) -> Any:
    """The same model in one of its equivalent shapes."""
    before: Any = model.config
    if config == before:
        return model
    state = {name: value.detach().clone() for name, value in model.state_dict().items()}
    if before.logits_bias and not config.logits_bias:
        _fold_bias(state)
    if before.scale_embeddings and not config.scale_embeddings:
        for name in state:
            if name.endswith("embedding.tokens.weight"):
                state[name] = state[name] * math.sqrt(config.d_model)
    shaped = cast(Any, type(model))(config)
    for name, parameter in shaped.named_parameters():
        parameter.copy_(state[name]) if name in state else parameter.zero_()
    return shaped.eval()


def _fold_bias(state: dict[str, Tensor]) -> None:
    """Put the bias c of logits into W and the last norm's bias b: W'(g·x + b') = W(g·x + b) + c for all x of mean 0.

    With u = 1/g, u·(g·x) is the sum of x, which is 0; so adding d⊗u to W adds d(u·b'), the same to every position.
    """
    norm = next(name for name in ("decoder.norm", "norm") if f"{name}.weight" in state)
    scale, shift, weight, bias = (
        state[name].double() for name in (f"{norm}.weight", f"{norm}.bias", "projection.weight", "projection.bias")
    )
    if bool((scale.abs() < SMALLEST_WEIGHT).any()):
        raise ConfigError("its last norm has weights of nearly 0.", remedy="Train it with model.logits_bias=false.")
    direction = 1 / scale
    length = direction @ direction
    moved = direction * (1 - direction @ shift / length)  # so that the new shift along the direction is its length
    added = (bias - weight @ moved) / length
    state["projection.weight"] = (weight + torch.outer(added, direction)).float()
    state[f"{norm}.bias"] = (shift + moved).float()
