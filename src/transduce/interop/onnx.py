"""A model as two ONNX graphs: one reads the source, one writes the next tokens and remembers the last.

Both are traced from the model's own layers, so that there is one description of the network. Only what takes sizes for
plain numbers is put in other words first: positions, and the mask of the future.

Shapes: B sentences, S source length, R rows (sentences × beams), T new tokens, P tokens so far, E = P + T, D model,
G key-value heads, K head, V vocabulary.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Sequence
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import torch
from torch import Tensor, nn

from transduce.decoding import DecodingOptions
from transduce.engines.onnx_engine import DECODER, DESCRIPTION, ENCODER, OnnxEngine, OnnxModel
from transduce.errors import ConfigError
from transduce.model import DecoderLayer, Transformer, TransformerConfig
from transduce.model.attention import Pattern
from transduce.model.cache import KeyValueCache, KeyValues
from transduce.model.positions import AttentionPositions, Rotation, SinusoidalPositions
from transduce.storage import directory_aside, write_whole
from transduce.text import Vocabularies

__all__ = ["OPSET", "OTHER_MEANINGS", "export_onnx", "greedy_logits", "to_graph"]

OTHER_MEANINGS = {
    "search": "The graphs give logits: beam, length penalty, limits and ids never to be written are the caller's. "
    "transduce --engine onnx searches as with PyTorch.",
    "tokens": "Ids are those of the tokenizer beside the graphs, of text in NFC with plain spaces; a source ends with "
    "eos_id, what is written starts with bos_id.",
}
"""What whoever runs the graphs by hand has to know."""
OPSET = 17
"""The version of the operators; from 17 on a normalisation is one of them."""
ROWS, LENGTH, NEW, SO_FAR = 3, 5, 2, 4
"""Sizes of the example that is traced: all different, none of them 1, so that none is taken for another."""


def export_onnx(model: Transformer, vocabularies: Vocabularies, output: Path) -> None:
    """Write a directory with the two graphs, their description and the vocabularies, aside and then renamed."""
    config = model.config
    if not isinstance(config, TransformerConfig):
        raise ConfigError(
            "only Transformers are exported to ONNX, not the recurrent network.", remedy="Leave it to PyTorch."
        )
    if not config.decoder_layers:
        raise ConfigError("a model without decoder layers remembers nothing.", remedy="Leave it to PyTorch.")
    model = _traceable(model)
    description = {
        "pad_id": config.pad_id,
        "bos_id": config.bos_id,
        "eos_id": config.eos_id,
        "output_size": config.output_size,
        "max_target_length": model.max_target_length,
    }
    with directory_aside(output, (ENCODER,), "exported graphs") as aside:
        _export_encoder(model, aside / ENCODER)
        _export_decoder(model, aside / DECODER)
        write_whole(aside / DESCRIPTION, (json.dumps(description, indent=2) + "\n").encode())
        for name, contents in vocabularies.files().items():
            write_whole(aside / name, contents)


def greedy_logits(
    path: Path, sources: Sequence[Sequence[int]], start: Sequence[int] = ()
) -> list[tuple[list[int], Tensor]]:
    """What an exported model writes of each source with beam 1, and the logits [T,V] of each step."""
    model = OnnxModel(path)
    found = []
    decoded = OnnxEngine(path).decode(sources, DecodingOptions(beam=1, start=start))
    for (best, *_), source in zip(decoded, sources, strict=True):
        source_ids = torch.tensor([[*source, model.eos_id]])
        target = [model.bos_id, *start, *best.tokens[:-1]]
        logits_TV = model.step(model.prefill(source_ids, len(target)), torch.tensor([target]))[0]
        found.append((best.tokens, logits_TV[len(start) :]))
    return found


class Reading(nn.Module):
    """Source ids to all that the decoder needs of them: which are real, and the keys and values of every layer."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, source_ids: Tensor) -> tuple[Tensor, ...]:
        """[B,S] to the mask [B,S], then keys and values [B,G,S,K] of each layer of the decoder."""
        real_BS = source_ids != self.model.config.pad_id
        memory_BSD = self.model.encoder(self.model.source_embedding(source_ids), real_BS[:, None, None, :])
        memories = [layer.cross_attention.keys_and_values(memory_BSD) for layer in _layers(self.model)]
        return real_BS, *(tensor for memory in memories for tensor in memory)


class Writing(nn.Module):
    """The next tokens to logits: `Transformer.step`, with what it remembers handed in and out."""

    def __init__(self, model: Transformer) -> None:
        super().__init__()
        self.model = model

    def forward(self, token_ids: Tensor, source_mask: Tensor, *tensors: Tensor) -> tuple[Tensor, ...]:
        """Logits [R,T,V], and keys and values [R,G,E,K] of each layer, for the next tokens [R,T].

        `tensors` are keys and values of the source [B,G,S,K] by layer, then those of the tokens so far [R,G,P,K].
        """
        decoder, half = self.model.decoder, len(tensors) // 2
        start = tensors[half].size(2)
        end = start + token_ids.size(1)
        x_RTD = self.model.target_embedding(token_ids, start=start)
        positions_E = torch.arange(end)
        mask_TE = positions_E <= positions_E[start:].unsqueeze(1)
        pattern = Pattern(mask_TE, *decoder.positions(start, end, like=x_RTD))
        memory_pattern = Pattern(source_mask[:, None, None, :])
        caches = [Remembered(*pair) for pair in _pairs(tensors[half:])]
        for layer, memory, cache in zip(_layers(self.model), _pairs(tensors[:half]), caches, strict=True):
            x_RTD = layer(x_RTD, pattern, KeyValues(*memory), memory_pattern, cache)
        logits = self.model.project(decoder.norm(x_RTD))
        return logits, *(tensor for cache in caches for tensor in cache.so_far)


class Remembered(KeyValueCache):
    """A cache without buffers: what was, and behind it what is new."""

    def __init__(self, keys_RGPK: Tensor, values_RGPK: Tensor) -> None:
        self.so_far = KeyValues(keys_RGPK, values_RGPK)

    def append(self, keys_RGTK: Tensor, values_RGTK: Tensor) -> KeyValues:
        """Add T new positions; returns all keys and values so far."""
        keys, values = self.so_far
        self.so_far = KeyValues(torch.cat((keys, keys_RGTK), dim=2), torch.cat((values, values_RGTK), dim=2))
        return self.so_far


class Sinusoids(nn.Module):
    """The paper's positional encoding as a formula in the graph: any length, no table."""

    def __init__(self, width: int) -> None:
        super().__init__()
        even = torch.arange(0, width, 2, dtype=torch.float64)
        self.register_buffer("period", 10000 ** (even / width))

    def angles(self, positions_T: Tensor) -> Tensor:
        """[T, width/2], in double precision as `sinusoidal_positions` has them."""
        return positions_T.double().unsqueeze(1) / cast(Tensor, self.period)

    def forward(self, x: Tensor, start: Any = 0) -> Tensor:
        """[B,T,D] at positions start … start+T-1."""
        angle = self.angles(torch.arange(x.size(1)) + start)
        return x + torch.stack((angle.sin(), angle.cos()), dim=-1).flatten(1).float()


class TracedPositions(nn.Module):
    """`AttentionPositions` for sizes that are only known when the graph is run."""

    def __init__(self, ours: AttentionPositions) -> None:
        super().__init__()
        self.bias = ours.bias
        self.sinusoids = Sinusoids(ours.rotary_width) if ours.rotary_width is not None else None

    def forward(self, start: Any, end: Any, like: Tensor) -> tuple[Tensor | None, Rotation | None]:
        """For queries at start … end-1 that look at keys at 0 … end-1: bias [H,T,E] and rotation."""
        keys_E = torch.arange(end)
        bias = None if self.bias is None else self.bias(keys_E[start:], keys_E).float()
        if self.sinusoids is None:
            return bias, None
        angle = self.sinusoids.angles(keys_E[start:])
        return bias, Rotation(cos=angle.cos().float(), sin=angle.sin().float())


class RootMeanSquare(nn.Module):
    """RMSNorm in single operations: the operator itself came later than `OPSET`."""

    def __init__(self, ours: nn.RMSNorm) -> None:
        super().__init__()
        self.weight, self.epsilon = ours.weight, cast(float, ours.eps)

    def forward(self, x: Tensor) -> Tensor:
        """[..., D] to [..., D]."""
        return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + self.epsilon) * self.weight


def _traceable(model: Transformer) -> Transformer:
    """A copy of the model with those parts replaced whose sizes would become constants."""
    model = deepcopy(model).float().cpu().eval()
    for part in list(model.modules()):
        for name, child in list(part.named_children()):
            if isinstance(child, SinusoidalPositions):
                setattr(part, name, Sinusoids(child.d_model))
            elif isinstance(child, AttentionPositions):
                setattr(part, name, TracedPositions(child))
            elif isinstance(child, nn.RMSNorm):
                setattr(part, name, RootMeanSquare(child))
    return model


def _export_encoder(model: Transformer, path: Path) -> None:
    outputs = ["source_mask", *_names("source", model)]
    sizes = {name: {0: "sentences", 2: "source_length"} for name in outputs[1:]}
    sizes |= {name: {0: "sentences", 1: "source_length"} for name in ("source_ids", "source_mask")}
    to_graph(Reading(model), (_example(model),), path, ["source_ids"], outputs, sizes)


def _export_decoder(model: Transformer, path: Path) -> None:
    source, past, present = (_names(kind, model) for kind in ("source", "past", "present"))
    with torch.no_grad():
        read = Reading(model)(_example(model))
    rows = 2 * ROWS
    so_far = [tensor.new_zeros(rows, tensor.size(1), SO_FAR, tensor.size(3)) for tensor in read[1:]]
    example = (torch.ones(rows, NEW, dtype=torch.long), *read, *so_far)
    sizes = {"token_ids": {0: "rows", 1: "new"}, "source_mask": {0: "sentences", 1: "source_length"}}
    sizes |= {"logits": {0: "rows", 1: "new"}}
    sizes |= {name: {0: "sentences", 2: "source_length"} for name in source}
    sizes |= {name: {0: "rows", 2: "so_far"} for name in past}
    sizes |= {name: {0: "rows", 2: "so_far_and_new"} for name in present}
    inputs = ["token_ids", "source_mask", *source, *past]
    to_graph(Writing(model), example, path, inputs, ["logits", *present], sizes)


def to_graph(
    module: nn.Module,
    example: tuple[Tensor, ...],
    path: Path,
    inputs: list[str],
    outputs: list[str],
    sizes: dict[str, dict[int, str]],
) -> None:
    """Trace a module on an example and write its graph; `sizes` names the dimensions that may vary."""
    try:
        import onnx  # noqa: F401
    except ImportError as error:
        raise ConfigError("onnx is not installed.", remedy='Install it: pip install "transduce[onnx]"') from error
    with warnings.catch_warnings(), torch.no_grad():
        # PyTorch prefers an exporter that needs more packages, and warns of each number that becomes a constant.
        warnings.simplefilter("ignore")
        torch.onnx.export(
            module, example, path, input_names=inputs, output_names=outputs, dynamic_axes=sizes, opset_version=OPSET,
            dynamo=False, do_constant_folding=False,  # else tied matrices would be written twice
        )  # fmt: skip


def _example(model: Transformer) -> Tensor:
    """Source ids [B,S], padded, of the model's own special ids, which every vocabulary has."""
    ids = torch.full((ROWS, LENGTH), model.config.eos_id)
    ids[1:, -1] = model.config.pad_id
    return ids


def _names(kind: str, model: Transformer) -> list[str]:
    return [f"{kind}.{layer}.{what}" for layer in range(len(model.decoder.layers)) for what in ("keys", "values")]


def _layers(model: Transformer) -> list[DecoderLayer]:
    return [cast(DecoderLayer, layer) for layer in model.decoder.layers]


def _pairs(tensors: Sequence[Tensor]) -> list[tuple[Tensor, Tensor]]:
    return list(zip(tensors[::2], tensors[1::2], strict=True))
