"""MarianMT (OPUS-MT), Pegasus, BART, mBART and M2M-100 (NLLB): one family, which fairseq's names unite.

                norm    positions                         norm on embeddings
Marian          post    the paper's sinusoids             no
Pegasus         pre     the paper's sinusoids             no
BART            post    learned                           yes
mBART           pre     learned                           yes
M2M-100, NLLB   pre     fairseq's sinusoids, as learned   no

fairseq's sinusoids have other frequencies than the paper's (10000^(-i/(D/2-1))) and start at the padding id plus one.
Here they become a table of learned positions: the network needs to know nothing of them, and training may improve them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from transduce.errors import ConfigError
from transduce.interop.joins import ROW, STACKED, Computed, WithoutFirst
from transduce.interop.kinds.kind import Architecture, Embeddings, Kind, has_bias, must_have, side_by_side, tying_of
from transduce.interop.names import Row, Table, affine
from transduce.interop.settings import ACTIVATIONS, Settings
from transduce.interop.weights import Weights
from transduce.model import TransformerConfig

__all__ = ["BART", "M2M100", "MARIAN", "MBART", "PEGASUS", "fairseq_sinusoids"]

UNUSED_POSITIONS = 2
"""Rows at the start of learned positions that BART inherited from fairseq, where they stood for padding."""
SHARED = "model.shared.weight"
SOURCE, TARGET = "model.encoder.embed_tokens.weight", "model.decoder.embed_tokens.weight"
EMBEDDINGS = Embeddings(
    source=f"{SOURCE} | {SHARED} | {TARGET} | lm_head.weight",
    target=f"{TARGET} | {SHARED} | {SOURCE} | lm_head.weight",
    output=f"lm_head.weight | {SHARED} | {TARGET} | {SOURCE}",
    shared=SHARED,
)
SEPARATE = Embeddings(SOURCE, f"{TARGET} | lm_head.weight", f"lm_head.weight | {TARGET}", SHARED)
"""Of Marian models whose sides have a vocabulary each."""


def fairseq_sinusoids(length: int, d_model: int, start: int) -> Tensor:
    """Positions start … start+length-1 as fairseq computes them, [length, d_model]: all sines, then all cosines."""
    half = d_model // 2
    frequencies = torch.exp(torch.arange(half).float() * -(math.log(10000) / (half - 1)))
    angles = torch.arange(start, start + length).float().unsqueeze(1) * frequencies
    return torch.nn.functional.pad(torch.cat((angles.sin(), angles.cos()), dim=1), (0, d_model % 2))


def _computed_positions(config: TransformerConfig) -> Tensor:
    return fairseq_sinusoids(config.max_length, config.d_model, config.pad_id + 1)


def _layer_rows(ours: str, theirs: str) -> Iterator[Row]:
    """Rows of the layers of a stack."""
    attentions = {"attention": "self_attn"}
    if ours == "decoder":
        attentions["cross_attention"] = "encoder_attn"
    here, there = f"{ours}.layers.{{n}}", f"{theirs}.layers.{{n}}"
    for our_name, their_name in attentions.items():
        projections = [f"{there}.{their_name}.{each}_proj" for each in "qkv"]
        yield from affine(f"{here}.{our_name}.qkv", projections, STACKED, STACKED)
        yield from affine(f"{here}.{our_name}.output", f"{there}.{their_name}.out_proj")
        yield from affine(f"{here}.{our_name}_residual.norm", f"{there}.{their_name}_layer_norm")
    yield from affine(f"{here}.feedforward.inner", f"{there}.fc1")
    yield from affine(f"{here}.feedforward.outer", f"{there}.fc2")
    yield from affine(f"{here}.feedforward_residual.norm", f"{there}.final_layer_norm")


def _rows(embeddings: Embeddings = EMBEDDINGS) -> Iterator[Row]:
    """Rows of all of the family; of which a model has which is for its configuration to say."""
    yield Row("source_embedding.tokens.weight", (embeddings.source,))
    yield Row("target_embedding.tokens.weight", (embeddings.target,))
    yield Row("projection.weight", (embeddings.output,))
    yield Row("projection.bias", ("final_logits_bias",), ROW)
    for side, stack in (("source", "encoder"), ("target", "decoder")):
        positions = (f"model.{stack}.embed_positions.weight",)
        yield Row(f"{side}_embedding.positions.weight", positions, WithoutFirst(UNUSED_POSITIONS))
        yield from affine(f"{side}_embedding.norm", f"model.{stack}.layernorm_embedding")
        yield from affine(f"{stack}.norm", f"model.{stack}.layer_norm")
        yield from _layer_rows(stack, f"model.{stack}")


def _table(**besides: Any) -> Table:
    return Table.of(_rows(), harmless=("final_logits_bias", SHARED, r"model\.(encoder|decoder)\.version"), **besides)


LEARNED = _table()
SINUSOIDS = _table(
    fixed=dict.fromkeys(
        [f"model.{stack}.embed_positions.weight" for stack in ("encoder", "decoder")],
        lambda shape, config: side_by_side(shape[0], config),
    )
)


def _whole_fairseq_table(shape: tuple[int, ...], config: TransformerConfig) -> Tensor:
    table = fairseq_sinusoids(shape[0], config.d_model, 0)
    table[config.pad_id : config.pad_id + 1] = 0
    return table


FAIRSEQ = _table(
    fixed=dict.fromkeys(
        [f"model.{stack}.embed_positions.weights" for stack in ("encoder", "decoder")], _whole_fairseq_table
    )
)
FAIRSEQ = replace(
    FAIRSEQ,
    rows={
        **FAIRSEQ.rows,
        **{
            f"{side}_embedding.positions.weight": Row(
                f"{side}_embedding.positions.weight", (), Computed(_computed_positions)
            )
            for side in ("source", "target")
        },
    },
)


def _described(settings: Settings, weights: Weights, **fixed: Any) -> Architecture:
    """What all of the family say in the same words."""
    pad, eos = settings.token("pad_token_id", 1), settings.token("eos_token_id", 2)
    start = settings.token("decoder_start_token_id")
    if pad is None or eos is None:
        raise settings.wrong("pad_token_id" if pad is None else "eos_token_id", "the id of a token")
    heads, d_ff = settings.size("encoder_attention_heads", 16), settings.size("encoder_ffn_dim", 4096)
    decoder_heads, decoder_d_ff = settings.size("decoder_attention_heads", 16), settings.size("decoder_ffn_dim", 4096)
    tying = tying_of(weights, EMBEDDINGS, settings.flag("tie_word_embeddings", True))
    return {
        "vocab_size": settings.size("vocab_size"),
        "encoder_layers": settings.size("encoder_layers", 12),
        "decoder_layers": settings.size("decoder_layers", 12),
        "d_model": settings.size("d_model", 1024),
        "d_ff": d_ff,
        "heads": heads,
        "decoder_heads": None if decoder_heads == heads else decoder_heads,
        "decoder_d_ff": None if decoder_d_ff == d_ff else decoder_d_ff,
        "dropout": settings.number("dropout", 0.1),
        "attention_dropout": settings.number("attention_dropout", 0.0),
        "activation_dropout": settings.number("activation_dropout", 0.0),
        "activation": settings.choice("activation_function", ACTIVATIONS, "gelu"),
        "max_length": settings.size("max_position_embeddings", 1024),
        "attention_bias": True,
        "tying": tying,
        "scale_embeddings": settings.flag("scale_embedding", False),
        "logits_bias": has_bias(weights, "final_logits_bias"),
        "pad_id": pad,
        "bos_id": eos if start is None else start,  # mBART starts with the tag of a language: its callers say which
        "eos_id": eos,
        **fixed,
    }


def _marian(settings: Settings, weights: Weights) -> Architecture:
    fixed: dict[str, Any] = {"norm_position": "post", "positions": "sinusoidal"}
    if not settings.flag("share_encoder_decoder_embeddings", True):
        vocabulary = settings.size("decoder_vocab_size", settings.size("vocab_size"))
        tying = tying_of(weights, SEPARATE, settings.flag("tie_word_embeddings", True))
        fixed |= {"target_vocab_size": vocabulary, "tying": {"all": "target", "embeddings": "none"}.get(tying, tying)}
    return _described(settings, weights, **fixed)


def _of(**fixed: Any) -> Callable[[Settings, Weights], Architecture]:
    return lambda settings, weights: _described(settings, weights, **fixed)


def _their_settings(model_type: str, **required: Any) -> Callable[[TransformerConfig], dict[str, Any]]:
    """Their configuration, of ours that has what is required of it."""

    def settings(config: TransformerConfig) -> dict[str, Any]:
        wanted = {"norm": "layer", "norm_epsilon": 1e-5, "feedforward_bias": True, "attention_bias": True, **required}
        must_have(model_type, config, wanted)
        decoder = config.decoder_side
        names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
        if config.activation not in names:
            raise ConfigError(f"{model_type} models have no activation={config.activation!r}.")
        if config.key_value_groups != config.heads or not config.key_width * config.heads == config.d_model:
            raise ConfigError(f"{model_type} models have heads of d_model / heads only.")
        if config.target_vocab_size is not None and model_type != "marian":
            raise ConfigError(f"{model_type} models have one vocabulary for both sides.")
        tied, sides = config.tying == "all", {}
        if model_type == "marian":
            shared = config.tying in ("all", "embeddings")
            tied = config.ties_output
            sides = {"share_encoder_decoder_embeddings": shared, "decoder_vocab_size": config.output_size}
        return {
            "model_type": model_type,
            "is_encoder_decoder": True,
            "vocab_size": config.vocab_size,
            **sides,
            "d_model": config.d_model,
            "encoder_layers": config.encoder_layers,
            "decoder_layers": config.decoder_layers,
            "encoder_attention_heads": config.heads,
            "decoder_attention_heads": decoder.heads,
            "encoder_ffn_dim": config.d_ff,
            "decoder_ffn_dim": decoder.d_ff,
            "dropout": config.dropout,
            "attention_dropout": config.attention_dropout,
            "activation_dropout": config.activation_dropout,
            "activation_function": names[config.activation],
            "max_position_embeddings": config.max_length,
            "scale_embedding": config.scale_embeddings,
            "tie_word_embeddings": tied,
            "pad_token_id": config.pad_id,
            "bos_token_id": config.bos_id,
            "eos_token_id": config.eos_id,
            "decoder_start_token_id": config.bos_id,
            "forced_eos_token_id": config.eos_id,
        }

    return settings


def _kind(architecture: str, model_type: str, table: Table, describe: Any = None, **shape: Any) -> Kind:
    sinusoids = shape.get("positions") == "sinusoidal"
    return Kind(
        architecture=architecture,
        model_type=model_type,
        network="transformer",
        describe=describe or _of(**shape),
        settings=_their_settings(model_type, **shape),
        table=lambda settings: table,
        interleaves=sinusoids,
        embeddings=replace(EMBEDDINGS, apart=model_type == "marian"),
        zeros=None if table is FAIRSEQ else "final_logits_bias",  # which M2M-100 has none of
    )


MARIAN = _kind(
    "MarianMTModel", "marian", SINUSOIDS, _marian, norm_position="post", positions="sinusoidal", embedding_norm=False
)
PEGASUS = _kind(
    "PegasusForConditionalGeneration", "pegasus", replace(SINUSOIDS, writes_fixed=True),
    norm_position="pre", positions="sinusoidal", embedding_norm=False,
)  # fmt: skip
BART = _kind(
    "BartForConditionalGeneration", "bart", LEARNED, norm_position="post", positions="learned", embedding_norm=True
)
MBART = _kind(
    "MBartForConditionalGeneration", "mbart", LEARNED, norm_position="pre", positions="learned", embedding_norm=True
)
M2M100 = _kind(
    "M2M100ForConditionalGeneration", "m2m_100", FAIRSEQ,
    norm_position="pre", positions="learned", embedding_norm=False, logits_bias=False,
)  # fmt: skip
