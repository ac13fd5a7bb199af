"""ViT: the encoder on pictures. The bias of its patches is added to their positions here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.errors import ConfigError
from transduce.interop.joins import STACKED
from transduce.interop.kinds.kind import Architecture, Kind, labels_of, must_have
from transduce.interop.names import Join, Place, Row, Table, affine
from transduce.interop.settings import ACTIVATIONS, Settings
from transduce.interop.weights import Weights
from transduce.model.vision import VisionConfig

__all__ = ["VIT"]


@dataclass(frozen=True)
class Patches(Join):
    """A convolution whose step is its width: a matrix over the numbers of a patch."""

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """[D, channels, patch, patch] as [D, channels × patch × patch]."""
        (part,) = parts
        return part.flatten(1)

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """And back."""
        config = place.config
        assert isinstance(config, VisionConfig)
        return [whole.view(-1, config.channels, config.patch, config.patch)]


@dataclass(frozen=True)
class PatchPositions(Join):
    """Positions [1, 1 + patches, D], and the bias of every patch in all but the class token's."""

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """The sum, [1 + patches, D]."""
        positions, bias = parts
        return torch.cat((positions[0, :1], positions[0, 1:] + bias))

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """Those of its patches as positions, and a bias that adds nothing."""
        config = place.config
        assert isinstance(config, VisionConfig)
        places = 1 + config.grid[0] * config.grid[1]  # a table may have more than are ever looked at
        return [whole[:places].unsqueeze(0), whole.new_zeros(whole.size(1))]


def _rows() -> Iterator[Row]:
    projection = "vit.embeddings.patch_embeddings.projection"
    yield Row("class_token", ("vit.embeddings.cls_token",))
    yield Row("patches.weight", (f"{projection}.weight",), Patches())
    yield Row("positions.weight", ("vit.embeddings.position_embeddings", f"{projection}.bias"), PatchPositions())
    ours, theirs = "encoder.layers.{n}", "vit.encoder.layer.{n}"
    projections = [f"{theirs}.attention.attention.{each}" for each in ("query", "key", "value")]
    weight, bias = affine(f"{ours}.attention.qkv", projections, STACKED, STACKED)
    yield weight
    yield Row(bias.ours, bias.theirs, STACKED, optional=True)
    yield from affine(f"{ours}.attention.output", f"{theirs}.attention.output.dense")
    yield from affine(f"{ours}.attention_residual.norm", f"{theirs}.layernorm_before")
    yield from affine(f"{ours}.feedforward.inner", f"{theirs}.intermediate.dense")
    yield from affine(f"{ours}.feedforward.outer", f"{theirs}.output.dense")
    yield from affine(f"{ours}.feedforward_residual.norm", f"{theirs}.layernorm_after")
    yield from affine("encoder.norm", "vit.layernorm")
    yield from affine("projection", "classifier")


TABLE = Table.of(_rows(), harmless=(r"vit\.pooler\.dense\.(weight|bias)",))


def _described(settings: Settings, weights: Weights) -> Architecture:
    (height, width), (down, across) = _pair(settings, "image_size", 224), _pair(settings, "patch_size", 16)
    if down != across or not down:
        raise settings.wrong("patch_size", "one number: patches are squares here")
    return {
        "encoder_layers": settings.size("num_hidden_layers", 12),
        "decoder_layers": 0,
        "d_model": settings.size("hidden_size", 768),
        "d_ff": settings.size("intermediate_size", 3072),
        "heads": settings.size("num_attention_heads", 12),
        "dropout": settings.number("hidden_dropout_prob", 0.0),
        "attention_dropout": settings.number("attention_probs_dropout_prob", 0.0),
        "activation": settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        "norm_position": "pre",
        "norm_epsilon": settings.number("layer_norm_eps", 1e-12),
        "positions": "learned",
        "max_length": (height // down) * (width // down) + 1,
        "attention_bias": True,
        "logits_bias": True,
        "vocab_size": 3,
        "labels": labels_of(weights, "classifier.weight"),
        "height": height,
        "width": width,
        "channels": settings.size("num_channels", 3),
        "patch": down,
    }


def _pair(settings: Settings, name: str, default: int) -> tuple[int, int]:
    """Two numbers, or one that stands for both."""
    value = settings.values.get(name, default)
    pair = value if isinstance(value, list) else [value, value]
    if len(pair) != 2 or not all(type(each) is int and 0 < each < 2**16 for each in pair):
        raise settings.wrong(name, "a number of pixels")
    return pair[0], pair[1]


def _their_settings(config: VisionConfig) -> dict[str, Any]:
    required = {
        "norm": "layer", "norm_position": "pre", "positions": "learned", "attention_bias": True,
        "feedforward_bias": True, "logits_bias": True,
    }  # fmt: skip
    must_have("ViT", config, required)
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    if config.activation not in names or config.key_width * config.heads != config.d_model:
        raise ConfigError("ViT models have a plain activation, and heads of d_model / heads.")
    labels = {str(number): f"LABEL_{number}" for number in range(config.labels)}
    return {
        "model_type": "vit",
        "num_hidden_layers": config.encoder_layers,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_attention_heads": config.heads,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "hidden_act": names[config.activation],
        "layer_norm_eps": config.norm_epsilon,
        "image_size": config.height if config.height == config.width else [config.height, config.width],
        "patch_size": config.patch,
        "num_channels": config.channels,
        "qkv_bias": True,
        "id2label": labels,
        "label2id": {name: int(key) for key, name in labels.items()},
    }


VIT = Kind(
    architecture="ViTForImageClassification",
    model_type="vit",
    network="vision",
    describe=_described,
    settings=_their_settings,
    table=lambda settings: TABLE,
)
