"""A model compiled for CTranslate2: C++ and int8, for translating without PyTorch.

Not every architecture has a counterpart there; what has none is refused by name, and never approximated.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from transduce.engines.compiled_file import MODEL
from transduce.engines.ctranslate2_engine import POSITIONS
from transduce.errors import ConfigError
from transduce.model import DecoderLayer, MultiHeadAttention, Transformer, TransformerConfig, sinusoidal_positions
from transduce.storage import directory_aside
from transduce.text import Vocabularies
from transduce.text.tokenizer import EOS

if TYPE_CHECKING:
    from torch import Tensor, nn

__all__ = ["OTHER_MEANINGS", "Quantization", "compile_model", "greedy_logits"]

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


ACTIVATIONS = {"relu": "RELU", "gelu": "GELU", "gelu_tanh": "GELUTanh", "silu": "SWISH"}
"""Ours, and theirs."""
FORBIDDEN = -3.4e38
"""Added to the logit of what is never written: nearly the lowest number there is."""


def compile_model(
    model: Transformer,
    vocabularies: Vocabularies,
    output: Path,
    quantization: Quantization | None = None,
    *,
    before_source: str | None = None,
    ends_source: bool = False,
    unwritten: Sequence[int] = (),
) -> None:
    """Write a CTranslate2 model directory, aside and then renamed; in int8 unless the model is narrow.

    The rest is for tools that do not see to it: a piece to put before each source, the end of sentence behind it, and
    ids that are never to be written.
    """
    from ctranslate2.specs import TransformerSpec, common_spec

    _check(model)
    config = model.config
    quantization = quantization or ("int8" if config.d_model >= INT8_FROM_WIDTH else "float32")
    activation = getattr(common_spec.Activation, ACTIVATIONS[config.activation])
    pre_norm = config.norm_position == "pre"
    depths = (config.encoder_layers, config.decoder_layers)
    spec = TransformerSpec.from_config(
        depths, config.heads, pre_norm=pre_norm, activation=activation, layernorm_embedding=config.embedding_norm
    )
    encoder, decoder = spec.encoder, spec.decoder
    encoder.embeddings[0].weight = _array(model.source_embedding.tokens.weight)
    decoder.embeddings.weight = _array(model.target_embedding.tokens.weight)
    decoder.projection.weight = _array(model.projection.weight)
    for stack, embedding in ((encoder, model.source_embedding), (decoder, model.target_embedding)):
        stack.scale_embeddings = config.scale_embeddings
        stack.position_encodings.encodings = _positions(embedding, config)
        if config.embedding_norm:
            _norm(embedding.norm, stack.layernorm_embedding)
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
    spec.config.add_source_eos = ends_source
    if before_source is not None:
        spec.config.add_source_bos, spec.config.bos_token = True, before_source  # what starts the target is another
    if unwritten or model.projection.bias is not None:
        bias = np.zeros(config.output_size, dtype=np.float32)
        bias += 0 if model.projection.bias is None else _array(model.projection.bias)
        bias[list(unwritten)] = FORBIDDEN
        decoder.projection.bias = bias
    spec.validate()
    spec.optimize(quantization=None if quantization == "float32" else quantization)
    with directory_aside(output, (MODEL,), "a compiled model") as aside:
        spec.save(str(aside))


def greedy_logits(
    path: Path, vocabularies: Vocabularies, sources: Sequence[Sequence[int]], start: Sequence[int] = ()
) -> list[tuple[list[int], Tensor]]:
    """What a compiled model writes of each source with beam 1, and the logits [T,V] of each step."""
    import ctranslate2
    import torch

    pieces, targets = vocabularies.source.all_pieces(), vocabularies.target.all_pieces()
    ids = {piece: index for index, piece in enumerate(targets)}
    results = ctranslate2.Translator(str(path), device="cpu", intra_threads=1).translate_batch(
        [[pieces[token] for token in (*source, EOS)] for source in sources],
        target_prefix=[[targets[token] for token in start]] * len(sources) if start else None,
        beam_size=1,
        max_decoding_length=POSITIONS // 4,
        min_decoding_length=0,
        return_logits_vocab=True,
        return_end_token=True,
    )
    found = []
    for result in results:
        steps = [torch.from_numpy(np.array(step)) for step in result.logits[0]]
        tokens = [ids[piece] for piece in result.hypotheses[0]]
        found.append((tokens[len(start) :], torch.stack(steps)[len(start) :]))
    return found


def _check(model: Transformer) -> None:
    config = model.config
    if not isinstance(config, TransformerConfig):
        raise ConfigError(
            "CTranslate2 has no counterpart of the recurrent network.", remedy="Leave it to PyTorch, which runs it."
        )
    plain = {
        "positions": config.positions in ("sinusoidal", "learned"),
        "max_length": config.positions != "learned" or config.max_length >= POSITIONS,
        "norm": config.norm == "layer",
        "activation": config.activation in ACTIVATIONS,
        "decoder_heads": config.decoder_heads is None,
        "d_k": config.key_width == config.value_width == config.d_model // config.heads,
        "key_value_heads": config.key_value_groups == config.heads,
    }
    for name, same in plain.items():
        if not same:
            raise ConfigError(
                f"CTranslate2 has no counterpart of {name}={getattr(config, name)!r}.",
                remedy="Translate with PyTorch instead.",
            )


def _positions(embedding: Any, config: TransformerConfig) -> Any:
    if config.positions == "learned":
        return _array(embedding.positions.weight)
    return sinusoidal_positions(POSITIONS, config.d_model).numpy()


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
