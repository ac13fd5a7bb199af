"""A model compiled for CTranslate2: C++ and int8, for translating without PyTorch.

Not every architecture has a counterpart there; what has none is refused by name, and never approximated.
"""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from transduce.engines.ctranslate2_engine import POSITIONS
from transduce.errors import ConfigError
from transduce.model import DecoderLayer, MultiHeadAttention, Transformer, TransformerConfig, sinusoidal_positions
from transduce.text import Vocabularies

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["OTHER_MEANINGS", "Quantization", "compile_model"]

Quantization = Literal["int8", "float32"]

INT8_FROM_WIDTH = 128
"""Narrower models lose most to int8 and are fast without it; at 128 it may cost half a BLEU (docs/log.md)."""

OTHER_MEANINGS = {
    "beam": "CTranslate2's search ends when as many hypotheses as the beam are complete, ours when no better can come.",
    "length_penalty": "It divides by |Y|^α. For the paper's penalty take all hypotheses of the beam with "
    "length_penalty=0 and rank them; transduce does so.",
    "max_length_ratio": "It has one max_decoding_length for all sentences; what reaches its own limit transduce "
    "decodes with PyTorch.",
    "suppress": "Padding, unknown words and tags are named in each call (disable_unk, suppress_sequences).",
    "prefix, sampling, no_repeat_ngram, repetition_penalty": "Similar but not the same; transduce decodes these with "
    "PyTorch.",
}
"""Decoding options that whoever calls CTranslate2 by hand has to give otherwise, or cannot have."""


def compile_model(
    model: Transformer, vocabularies: Vocabularies, output: Path, quantization: Quantization | None = None
) -> None:
    """Write a CTranslate2 model directory, aside and then renamed; in int8 unless the model is narrow."""
    from ctranslate2.specs import TransformerSpec, common_spec

    _check(model)
    config = model.config
    quantization = quantization or ("int8" if config.d_model >= INT8_FROM_WIDTH else "float32")
    activation = getattr(common_spec.Activation, {"relu": "RELU", "gelu": "GELU", "silu": "SWISH"}[config.activation])
    pre_norm = config.norm_position == "pre"
    depths = (config.encoder_layers, config.decoder_layers)
    spec = TransformerSpec.from_config(depths, config.heads, pre_norm=pre_norm, activation=activation)
    positions = sinusoidal_positions(POSITIONS, config.d_model).numpy()
    encoder, decoder = spec.encoder, spec.decoder
    encoder.embeddings[0].weight = _array(model.source_embedding.tokens.weight)
    decoder.embeddings.weight = _array(model.target_embedding.tokens.weight)
    decoder.projection.weight = _array(model.projection.weight)
    for stack in (encoder, decoder):
        stack.scale_embeddings = config.scale_embeddings
        stack.position_encodings.encodings = positions
    if pre_norm:
        _norm(model.encoder.norm, encoder.layer_norm)
        _norm(model.decoder.norm, decoder.layer_norm)
    for layer, theirs in zip(model.encoder.layers, encoder.layer, strict=True):
        _layer(layer, theirs)
    for layer, theirs in zip(model.decoder.layers, decoder.layer, strict=True):
        _layer(layer, theirs)
        assert isinstance(layer, DecoderLayer)
        _cross_attention(layer.cross_attention, theirs.attention)
        _norm(layer.cross_attention_residual.norm, theirs.attention.layer_norm)
    spec.register_source_vocabulary(vocabularies.source.all_pieces())
    spec.register_target_vocabulary(vocabularies.target.all_pieces())
    spec.config.layer_norm_epsilon = config.norm_epsilon
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    aside = output.with_name(f".{output.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    spec.save(str(aside))
    shutil.rmtree(output, ignore_errors=True)
    aside.rename(output)


def _check(model: Transformer) -> None:
    config = model.config
    if not isinstance(config, TransformerConfig):
        raise ConfigError(
            "CTranslate2 has no counterpart of the recurrent network.", remedy="Leave it to PyTorch, which runs it."
        )
    plain = {
        "positions": config.positions == "sinusoidal",
        "norm": config.norm == "layer",
        "activation": config.activation in ("relu", "gelu", "silu"),
        "d_k": config.key_width == config.value_width == config.d_model // config.heads,
        "key_value_heads": config.key_value_groups == config.heads,
    }
    for name, same in plain.items():
        if not same:
            raise ConfigError(
                f"CTranslate2 has no counterpart of {name}={getattr(config, name)!r}.",
                remedy="Translate with PyTorch instead.",
            )


def _layer(ours: nn.Module, theirs: Any) -> None:
    attention: Any = ours.attention
    _linear(attention.qkv, theirs.self_attention.linear[0])
    _linear(attention.output, theirs.self_attention.linear[1])
    residual: Any = ours.attention_residual
    _norm(residual.norm, theirs.self_attention.layer_norm)
    feedforward: Any = ours.feedforward
    _linear(feedforward.inner, theirs.ffn.linear_0)
    _linear(feedforward.outer, theirs.ffn.linear_1)
    residual = ours.feedforward_residual
    _norm(residual.norm, theirs.ffn.layer_norm)


def _cross_attention(ours: MultiHeadAttention, theirs: Any) -> None:
    """W^Q by itself, W^K and W^V together."""
    query = ours.widths[0]
    theirs.linear[0].weight, theirs.linear[1].weight = _array(ours.qkv.weight[:query]), _array(ours.qkv.weight[query:])
    if ours.qkv.bias is not None:
        theirs.linear[0].bias, theirs.linear[1].bias = _array(ours.qkv.bias[:query]), _array(ours.qkv.bias[query:])
    _linear(ours.output, theirs.linear[2])


def _linear(ours: nn.Linear, theirs: Any) -> None:
    theirs.weight = _array(ours.weight)
    if ours.bias is not None:
        theirs.bias = _array(ours.bias)


def _norm(ours: Any, theirs: Any) -> None:
    theirs.gamma, theirs.beta = _array(ours.weight), _array(ours.bias)


def _array(tensor: Tensor) -> Any:
    # A copy: quantisation scales its input in place, and would scale our model.
    return tensor.detach().float().cpu().numpy().copy()
