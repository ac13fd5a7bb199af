"""The networks by name, for whoever reads a description of one."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from transduce.model.config import TransformerConfig
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderConfig, EncoderOnly
from transduce.model.transformer import Transformer
from transduce.model.vision import VisionConfig, VisionTransformer

__all__ = ["Network", "config_class", "make_network"]

Network = Literal["transformer", "recurrent", "encoder-only", "decoder-only", "vision"]


def config_class(network: Network) -> type[TransformerConfig]:
    """The record that describes a network of this name."""
    if network == "encoder-only":
        return EncoderConfig
    return VisionConfig if network == "vision" else TransformerConfig


def make_network(network: Network, architecture: dict[str, Any]) -> nn.Module:
    """The network that a description means, freshly drawn."""
    if network == "encoder-only":
        return EncoderOnly(EncoderConfig.base(**architecture))
    if network == "vision":
        return VisionTransformer(VisionConfig.base(**architecture))
    config = TransformerConfig.base(**architecture)
    return LanguageModel(config) if network == "decoder-only" else Transformer(config)
