"""T5: relative positions, RMSNorm before each sub-layer, no biases; gated (version 1.1) or plain, tied or untied.

T5 does not divide scores by √d_k: W^Q is multiplied by it here. Where its output is tied it divides what it projects by
√d_model: that is in the weight of the decoder's last norm here.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from typing import Any

from transduce.errors import ConfigError
from transduce.interop.joins import Scaled, Stacked
from transduce.interop.kinds.kind import Architecture, Embeddings, Kind, must_have, tying_of
from transduce.interop.names import SAME, Place, Row, Table
from transduce.interop.settings import Settings
from transduce.interop.weights import Weights
from transduce.model import TransformerConfig

__all__ = ["T5"]

SHARED, SOURCE, TARGET = "shared.weight", "encoder.embed_tokens.weight", "decoder.embed_tokens.weight"
EMBEDDINGS = Embeddings(
    source=f"{SOURCE} | {SHARED} | {TARGET} | lm_head.weight",
    target=f"{TARGET} | {SHARED} | {SOURCE} | lm_head.weight",
    output=f"lm_head.weight | {SHARED} | {TARGET} | {SOURCE}",
    shared=SHARED,
)
ACTIVATIONS = {
    "relu": "relu", "gelu": "gelu", "gelu_new": "gelu_tanh", "silu": "silu",
    "gated-relu": "reglu", "gated-gelu": "geglu_tanh", "gated-gelu_new": "geglu_tanh", "gated-silu": "swiglu",
    "gated-gelu_python": "geglu",
}  # fmt: skip
"""What `feed_forward_proj` says, and ours; what it calls gated gelu is the one by a tanh."""


def _without_scale(place: Place) -> float:
    return math.sqrt(place.config.key_width)


def _scale(place: Place) -> float:
    return 1 / math.sqrt(place.config.d_model)


def _rows(gated: bool, scaled: bool) -> Iterator[Row]:
    yield Row("source_embedding.tokens.weight", (EMBEDDINGS.source,))
    yield Row("target_embedding.tokens.weight", (EMBEDDINGS.target,))
    yield Row("projection.weight", (EMBEDDINGS.output,))
    for stack in ("encoder", "decoder"):
        attentions = {"attention": "0.SelfAttention"}
        if stack == "decoder":
            attentions["cross_attention"] = "1.EncDecAttention"
        ours, theirs = f"{stack}.layers.{{n}}", f"{stack}.block.{{n}}.layer"
        for our_name, their_name in attentions.items():
            there = f"{theirs}.{their_name}"
            projections = tuple(f"{there}.{each}.weight" for each in "qkv")
            yield Row(f"{ours}.{our_name}.qkv.weight", projections, Stacked(_without_scale))
            yield Row(f"{ours}.{our_name}.output.weight", (f"{there}.o.weight",))
            norm = f"{theirs}.{their_name[0]}.layer_norm.weight"
            yield Row(f"{ours}.{our_name}_residual.norm.weight", (norm,))
        last = f"{theirs}.{len(attentions)}"
        yield Row(f"{ours}.feedforward.inner.weight", (f"{last}.DenseReluDense.wi{'_0' * gated}.weight",))
        yield Row(f"{ours}.feedforward.gated.weight", (f"{last}.DenseReluDense.wi_1.weight",))
        yield Row(f"{ours}.feedforward.outer.weight", (f"{last}.DenseReluDense.wo.weight",))
        yield Row(f"{ours}.feedforward_residual.norm.weight", (f"{last}.layer_norm.weight",))
        bias = f"{stack}.block.0.layer.0.SelfAttention.relative_attention_bias.weight"
        yield Row(f"{stack}.positions.bias.weight", (bias,))
    yield Row("encoder.norm.weight", ("encoder.final_layer_norm.weight",))
    yield Row("decoder.norm.weight", ("decoder.final_layer_norm.weight",), Scaled(_scale) if scaled else SAME)


def _table(settings: Settings) -> Table:
    gated = str(settings.values.get("feed_forward_proj")).startswith("gated-")
    scaled = settings.flag("scale_decoder_outputs", settings.flag("tie_word_embeddings", True))
    # A table that old files have and T5 never used; and an embedding that nobody reads if both sides have their own.
    unused = r"decoder\.block\.0\.layer\.1\.EncDecAttention\.relative_attention_bias\.weight"
    return Table.of(_rows(gated, scaled), harmless=(unused, re.escape(SHARED)))


def _described(settings: Settings, weights: Weights) -> Architecture:
    pad, eos = settings.token("pad_token_id", 0), settings.token("eos_token_id", 1)
    if pad is None or eos is None:
        raise settings.wrong("pad_token_id" if pad is None else "eos_token_id", "the id of a token")
    start = settings.token("decoder_start_token_id")
    layers, width = settings.size("num_layers", 6), settings.size("d_kv", 64)
    return {
        "vocab_size": settings.size("vocab_size", 32128),
        "encoder_layers": layers,
        "decoder_layers": settings.size("num_decoder_layers", layers),
        "d_model": settings.size("d_model", 512),
        "d_ff": settings.size("d_ff", 2048),
        "heads": settings.size("num_heads", 8),
        "d_k": width,
        "d_v": width,
        "dropout": settings.number("dropout_rate", 0.1),
        "activation": settings.choice("feed_forward_proj", ACTIVATIONS, "relu"),
        "norm": "rms",
        "norm_position": "pre",
        "norm_epsilon": settings.number("layer_norm_epsilon", 1e-6),
        "positions": "relative",
        "relative_buckets": settings.size("relative_attention_num_buckets", 32),
        "relative_max_distance": settings.size("relative_attention_max_distance", 128),
        "attention_bias": False,
        "feedforward_bias": False,
        "tying": tying_of(weights, EMBEDDINGS, output_tied=True),
        "scale_embeddings": False,
        "pad_id": pad,
        "bos_id": pad if start is None else start,
        "eos_id": eos,
    }


def _their_settings(config: TransformerConfig) -> dict[str, Any]:
    required = {
        "norm": "rms", "norm_position": "pre", "positions": "relative", "attention_bias": False,
        "feedforward_bias": False, "scale_embeddings": False, "embedding_norm": False, "logits_bias": False,
    }  # fmt: skip
    must_have("T5", config, required)
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    plain = config.decoder_side == config and config.key_value_groups == config.heads
    if not plain or config.key_width != config.value_width or config.activation not in names:
        raise ConfigError("T5 models have the same heads on both sides, as wide for keys as for values.")
    if config.target_vocab_size is not None:
        raise ConfigError("T5 models have one vocabulary for both sides.")
    return {
        "model_type": "t5",
        "is_encoder_decoder": True,
        "vocab_size": config.vocab_size,
        "num_layers": config.encoder_layers,
        "num_decoder_layers": config.decoder_layers,
        "d_model": config.d_model,
        "d_ff": config.d_ff,
        "d_kv": config.key_width,
        "num_heads": config.heads,
        "dropout_rate": config.dropout,
        "feed_forward_proj": names[config.activation],
        "layer_norm_epsilon": config.norm_epsilon,
        "relative_attention_num_buckets": config.relative_buckets,
        "relative_attention_max_distance": config.relative_max_distance,
        "tie_word_embeddings": config.tying == "all",
        "scale_decoder_outputs": config.tying == "all",
        "pad_token_id": config.pad_id,
        "eos_token_id": config.eos_id,
        "decoder_start_token_id": config.bos_id,
    }


T5 = Kind(
    architecture="T5ForConditionalGeneration",
    model_type="t5",
    network="transformer",
    describe=_described,
    settings=_their_settings,
    table=_table,
    embeddings=EMBEDDINGS,
)
