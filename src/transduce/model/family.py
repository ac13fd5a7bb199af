"""The networks by name, for whoever reads a description of one."""

from __future__ import annotations

from typing import Any, Literal

from torch import nn

from transduce.model.config import TransformerConfig
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderConfig, EncoderOnly
from transduce.model.recurrent import RecurrentConfig, RecurrentTranslator
from transduce.model.transformer import Transformer
from transduce.model.vision import VisionConfig, VisionTransformer

__all__ = ["Config", "Network", "config_class", "make_network"]

Network = Literal["transformer", "recurrent", "encoder-only", "decoder-only", "vision"]


Config = TransformerConfig | RecurrentConfig
"""What describes a network; those of encoders and pictures are Transformers' with more to say."""


def config_class(network: Network) -> type[TransformerConfig] | type[RecurrentConfig]:
    """The record that describes a network of this name."""
    if network == "recurrent":
        return RecurrentConfig
    if network == "encoder-only":
        return EncoderConfig
    return VisionConfig if network == "vision" else TransformerConfig


def make_network(network: Network, architecture: dict[str, Any]) -> nn.Module:
    """The network that a description means, freshly drawn."""
    if network == "recurrent":
        return RecurrentTranslator(RecurrentConfig.base(**architecture))
    if network == "encoder-only":
        return EncoderOnly(EncoderConfig.base(**architecture))
    if network == "vision":
        return VisionTransformer(VisionConfig.base(**architecture))
    config = TransformerConfig.base(**architecture)
    return LanguageModel(config) if network == "decoder-only" else Transformer(config)
