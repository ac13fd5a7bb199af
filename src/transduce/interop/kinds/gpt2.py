"""GPT-2: a decoder that stands alone. Its matrices are written [in, out], and its attention may be scaled otherwise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from transduce.errors import ConfigError
from transduce.interop.joins import TRANSPOSED
from transduce.interop.kinds.kind import Architecture, Kind, must_have
from transduce.interop.names import Join, Place, Row, Table, affine
from transduce.interop.settings import ACTIVATIONS, Settings
from transduce.interop.weights import Weights
from transduce.model import TransformerConfig

__all__ = ["GPT2"]

Scale = Callable[[Place], float]


@dataclass(frozen=True)
class QueryScaled(Join):
    """W^Q, W^K and W^V side by side, [in, out], or their biases; W^Q scaled."""

    scale: Scale

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """Under each other, as [out, in]."""
        (part,) = parts
        return self._with_query(part.T if part.dim() == 2 else part, self.scale(place))

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """Side by side."""
        scaled = self._with_query(whole, 1 / self.scale(place))
        return [scaled.T if scaled.dim() == 2 else scaled]

    @staticmethod
    def _with_query(qkv: Tensor, scale: float) -> Tensor:
        query, rest = qkv[: len(qkv) // 3], qkv[len(qkv) // 3 :]
        return torch.cat((query * scale, rest))


def _query_scale(settings: Settings) -> Scale:
    """What W^Q has to be multiplied by, for we always divide by √d_k and never by a layer's number."""
    scaled = settings.flag("scale_attn_weights", True)
    by_layer = settings.flag("scale_attn_by_inverse_layer_idx", False)
    return lambda place: (1.0 if scaled else math.sqrt(place.config.key_width)) / (place.layer + 1 if by_layer else 1)


def _rows(scale: Scale) -> Iterator[Row]:
    words = "transformer.wte.weight"
    yield Row("embedding.tokens.weight", (f"{words} | lm_head.weight",))
    yield Row("projection.weight", (f"lm_head.weight | {words}",))
    yield Row("embedding.positions.weight", ("transformer.wpe.weight",))
    ours, theirs = "layers.{n}", "transformer.h.{n}"
    yield from affine(f"{ours}.attention.qkv", f"{theirs}.attn.c_attn", QueryScaled(scale), QueryScaled(scale))
    yield from affine(f"{ours}.attention.output", f"{theirs}.attn.c_proj", TRANSPOSED)
    yield from affine(f"{ours}.attention_residual.norm", f"{theirs}.ln_1")
    yield from affine(f"{ours}.feedforward.inner", f"{theirs}.mlp.c_fc", TRANSPOSED)
    yield from affine(f"{ours}.feedforward.outer", f"{theirs}.mlp.c_proj", TRANSPOSED)
    yield from affine(f"{ours}.feedforward_residual.norm", f"{theirs}.ln_2")
    yield from affine("norm", "transformer.ln_f")


def _table(settings: Settings) -> Table:
    masks = (r"transformer\.h\.\d+\.attn\.(bias|masked_bias)",)  # who may look at whom, which is computed here
    return Table.of(_rows(_query_scale(settings)), harmless=masks)


def _described(settings: Settings, weights: Weights) -> Architecture:
    settings.must_be("add_cross_attention", False)
    eos = settings.token("eos_token_id", 50256)
    eos = 0 if eos is None else eos
    start, pad = settings.token("bos_token_id", 50256), settings.token("pad_token_id")
    words, head = "transformer.wte.weight", "lm_head.weight"
    tied = head not in weights or words not in weights or torch.equal(weights.tensor(words), weights.tensor(head))
    width = settings.size("n_embd", 768)
    return {
        "vocab_size": settings.size("vocab_size", 50257),
        "encoder_layers": 0,
        "decoder_layers": settings.size("n_layer", 12),
        "d_model": width,
        "d_ff": settings.size("n_inner", 4 * width),
        "heads": settings.size("n_head", 12),
        "dropout": settings.number("resid_pdrop", 0.1),
        "attention_dropout": settings.number("attn_pdrop", 0.1),
        "activation": settings.choice("activation_function", ACTIVATIONS, "gelu_new"),
        "norm_position": "pre",
        "norm_epsilon": settings.number("layer_norm_epsilon", 1e-5),
        "positions": "learned",
        "max_length": settings.size("n_positions", 1024),
        "attention_bias": True,
        "tying": "all" if tied else "none",
        "scale_embeddings": False,
        # GPT-2 was made without padding, and nothing here looks at it; but the end must not be taken for it.
        "pad_id": pad if pad is not None and pad != eos else int(eos == 0),
        "bos_id": eos if start is None else start,
        "eos_id": eos,
    }


def _their_settings(config: TransformerConfig) -> dict[str, Any]:
    required = {
        "norm": "layer", "norm_position": "pre", "positions": "learned", "attention_bias": True,
        "feedforward_bias": True, "scale_embeddings": False, "embedding_norm": False, "logits_bias": False,
    }  # fmt: skip
    must_have("GPT-2", config, required)
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    plain = config.key_width * config.heads == config.d_model and config.key_value_groups == config.heads
    if not plain or config.activation not in names:
        raise ConfigError("GPT-2 models have a plain activation, and heads of d_model / heads.")
    return {
        "model_type": "gpt2",
        "vocab_size": config.vocab_size,
        "n_positions": config.max_length,
        "n_embd": config.d_model,
        "n_layer": config.decoder_layers,
        "n_head": config.heads,
        "n_inner": config.d_ff,
        "activation_function": names[config.activation],
        "resid_pdrop": config.dropout,
        "embd_pdrop": config.dropout,
        "attn_pdrop": config.attention_dropout,
        "layer_norm_epsilon": config.norm_epsilon,
        "tie_word_embeddings": config.ties_output,
        "bos_token_id": config.bos_id,
        "eos_token_id": config.eos_id,
        "pad_token_id": config.pad_id,
    }


def _prefixed(name: str) -> str:
    """Files of the network without its head have the same names without the first word."""
    return name if name.startswith(("transformer.", "lm_head.")) else f"transformer.{name}"


GPT2 = Kind(
    architecture="GPT2LMHeadModel",
    model_type="gpt2",
    network="decoder-only",
    describe=_described,
    settings=_their_settings,
    table=_table,
    rename=_prefixed,
)
