"""BERT: an encoder that guesses masked tokens, names texts or tags tokens.

Every text is its first (token type 0), whose vector is added to the positions here.
"""

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
from transduce.model.encoder_only import EncoderConfig, Head

__all__ = ["BERT_MASKED", "BERT_SENTENCE", "BERT_TOKEN"]


@dataclass(frozen=True)
class FirstText(Join):
    """Positions with the vector of token type 0 in each."""

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """The sum."""
        positions, types = parts
        return positions + types[:1]

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """All of it as positions, and types that add nothing."""
        return [whole, whole.new_zeros(2, whole.size(1))]


def _rows() -> Iterator[Row]:
    words = "bert.embeddings.word_embeddings.weight"
    yield Row("embedding.tokens.weight", (f"{words} | cls.predictions.decoder.weight",))
    both = ("bert.embeddings.position_embeddings.weight", "bert.embeddings.token_type_embeddings.weight")
    yield Row("embedding.positions.weight", both, FirstText())
    yield from affine("embedding.norm", "bert.embeddings.LayerNorm")
    ours, theirs = "encoder.layers.{n}", "bert.encoder.layer.{n}"
    projections = [f"{theirs}.attention.self.{each}" for each in ("query", "key", "value")]
    yield from affine(f"{ours}.attention.qkv", projections, STACKED, STACKED)
    yield from affine(f"{ours}.attention.output", f"{theirs}.attention.output.dense")
    yield from affine(f"{ours}.attention_residual.norm", f"{theirs}.attention.output.LayerNorm")
    yield from affine(f"{ours}.feedforward.inner", f"{theirs}.intermediate.dense")
    yield from affine(f"{ours}.feedforward.outer", f"{theirs}.output.dense")
    yield from affine(f"{ours}.feedforward_residual.norm", f"{theirs}.output.LayerNorm")


def _labelled() -> Iterator[Row]:
    yield from _rows()
    yield from affine("pooler", "bert.pooler.dense")
    yield from affine("projection", "classifier")


def _masked() -> Iterator[Row]:
    yield from _rows()
    yield from affine("transform.dense", "cls.predictions.transform.dense")
    yield from affine("transform.norm", "cls.predictions.transform.LayerNorm")
    words = "bert.embeddings.word_embeddings.weight"
    yield Row("projection.weight", (f"cls.predictions.decoder.weight | {words}",))
    yield Row(
        "projection.bias",
        ("cls.predictions.decoder.bias | cls.predictions.bias",),
        writes=("cls.predictions.bias", "cls.predictions.decoder.bias"),
    )


IDS = r"bert\.embeddings\.position_ids"
NEXT_SENTENCE = (r"bert\.pooler\.dense\.(weight|bias)", r"cls\.seq_relationship\.(weight|bias)")
"""What tells whether one text follows another: no part of guessing tokens."""


def _described(settings: Settings, weights: Weights, head: Head) -> Architecture:
    settings.must_be("position_embedding_type", "absolute")
    settings.must_be("is_decoder", False)
    settings.must_be("add_cross_attention", False)
    pad = settings.token("pad_token_id", 0)
    pad = 0 if pad is None else pad
    words, decoder = "bert.embeddings.word_embeddings.weight", "cls.predictions.decoder.weight"
    tied = decoder not in weights or words not in weights
    tied = tied or torch.equal(weights.tensor(words), weights.tensor(decoder))
    start, end = (each for each in range(3) if each != pad)
    return {
        "vocab_size": settings.size("vocab_size", 30522),
        "encoder_layers": settings.size("num_hidden_layers", 12),
        "decoder_layers": 0,
        "d_model": settings.size("hidden_size", 768),
        "d_ff": settings.size("intermediate_size", 3072),
        "heads": settings.size("num_attention_heads", 12),
        "dropout": settings.number("hidden_dropout_prob", 0.1),
        "attention_dropout": settings.number("attention_probs_dropout_prob", 0.1),
        "activation": settings.choice("hidden_act", ACTIVATIONS, "gelu"),
        "norm_position": "post",
        "norm_epsilon": settings.number("layer_norm_eps", 1e-12),
        "positions": "learned",
        "max_length": settings.size("max_position_embeddings", 512),
        "attention_bias": True,
        "tying": "all" if tied else "none",
        "scale_embeddings": False,
        "embedding_norm": True,
        "logits_bias": True,
        "pad_id": pad,
        "bos_id": start,
        "eos_id": end,
        "head": head,
        "labels": None if head == "masked" else labels_of(weights, "classifier.weight"),
        "pooling": "first",
        "head_transform": True,
    }


def _their_settings(config: EncoderConfig) -> dict[str, Any]:
    required = {
        "norm": "layer", "norm_position": "post", "positions": "learned", "attention_bias": True,
        "feedforward_bias": True, "scale_embeddings": False, "embedding_norm": True, "logits_bias": True,
    }  # fmt: skip
    required |= {"head_transform": True} if config.head == "masked" else {}
    required |= {"pooling": "first"} if config.head == "sentence" else {}
    must_have("BERT", config, required)
    names = {ours: theirs for theirs, ours in reversed(ACTIVATIONS.items())}
    if config.activation not in names or config.key_width * config.heads != config.d_model:
        raise ConfigError("BERT models have a plain activation, and heads of d_model / heads.")
    labels = {str(number): f"LABEL_{number}" for number in range(config.labels or 0)}
    return {
        "model_type": "bert",
        "vocab_size": config.vocab_size,
        "num_hidden_layers": config.encoder_layers,
        "hidden_size": config.d_model,
        "intermediate_size": config.d_ff,
        "num_attention_heads": config.heads,
        "hidden_dropout_prob": config.dropout,
        "attention_probs_dropout_prob": config.attention_dropout,
        "hidden_act": names[config.activation],
        "layer_norm_eps": config.norm_epsilon,
        "max_position_embeddings": config.max_length,
        "type_vocab_size": 2,
        "tie_word_embeddings": config.ties_output,
        "pad_token_id": config.pad_id,
        **({"id2label": labels, "label2id": {name: int(key) for key, name in labels.items()}} if labels else {}),
    }


def _newer(name: str) -> str:
    """Very old files call a norm's weight and bias by Greek letters."""
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _kind(architecture: str, head: Head, table: Table) -> Kind:
    return Kind(
        architecture=architecture,
        model_type="bert",
        network="encoder-only",
        describe=lambda settings, weights: _described(settings, weights, head),
        settings=_their_settings,
        table=lambda settings: table,
        rename=_newer,
    )


BERT_MASKED = _kind(
    "BertForMaskedLM",
    "masked",
    Table.of(_masked(), harmless=(IDS, *NEXT_SENTENCE)),
)
BERT_SENTENCE = _kind("BertForSequenceClassification", "sentence", Table.of(_labelled(), harmless=(IDS,)))
BERT_TOKEN = _kind(
    "BertForTokenClassification", "token", Table.of(_labelled(), harmless=(IDS, r"bert\.pooler\.dense\.(weight|bias)"))
)
