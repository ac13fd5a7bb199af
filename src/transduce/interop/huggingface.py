"""Models of Hugging Face's `transformers`, as ours: read from their directory, without that library.

>>> from transduce.interop import load_huggingface
>>> model = load_huggingface("opus-mt-en-de")
>>> logits = model(source_ids, target_ids)  # their ids, their logits
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from torch import nn

from transduce.errors import BundleError, ConfigError, nearest
from transduce.interop.dimension import interleaved
from transduce.interop.kinds.bart import BART, M2M100, MARIAN, MBART, PEGASUS
from transduce.interop.kinds.bert import BERT_MASKED, BERT_SENTENCE, BERT_TOKEN
from transduce.interop.kinds.gpt2 import GPT2
from transduce.interop.kinds.kind import Architecture, Kind
from transduce.interop.kinds.t5 import T5
from transduce.interop.kinds.vit import VIT
from transduce.interop.names import state_from_theirs
from transduce.interop.settings import Settings
from transduce.interop.weights import Weights, read_json
from transduce.model.family import make_network

__all__ = ["KINDS", "HuggingFaceModel", "load_huggingface", "read_huggingface"]

KINDS = {
    kind.architecture: kind
    for kind in (MARIAN, PEGASUS, BART, MBART, M2M100, T5, BERT_MASKED, BERT_SENTENCE, BERT_TOKEN, GPT2, VIT)
}
"""What can be imported, by the class that config.json names."""


@dataclass(frozen=True)
class HuggingFaceModel:
    """A model that has been read, and what its directory says of it."""

    model: nn.Module
    """Ours, in evaluation mode; its ids are theirs."""
    kind: Kind
    architecture: Architecture
    """The fields of the model's configuration."""
    settings: dict[str, Any]
    """config.json."""
    generation: dict[str, Any]
    """generation_config.json; empty where there is none."""


def load_huggingface(directory: str | Path, allow_pickle: bool = False) -> nn.Module:
    """The model of a directory, as ours: `model(source, target)`, or `model(ids)` where one text is read, gives logits.

    MarianMT (OPUS-MT), Pegasus, BART, mBART, M2M-100 and NLLB, T5, BERT, GPT-2 and ViT, from safetensors; pickled
    weights only with `allow_pickle`, and then tensors alone. What has no counterpart here is refused by name.
    """
    return read_huggingface(directory, allow_pickle).model


def read_huggingface(directory: str | Path, allow_pickle: bool = False) -> HuggingFaceModel:
    """As `load_huggingface`, with what the directory says of the model."""
    path = Path(directory)
    settings = Settings(read_json(path / "config.json"), path / "config.json")
    kind = _kind(settings)
    weights = Weights.open(path, allow_pickle).renamed(kind.rename)
    architecture = kind.describe(settings, weights)
    model = _model(kind, architecture, weights, settings)
    generation = path / "generation_config.json"
    return HuggingFaceModel(
        model, kind, architecture, dict(settings.values), read_json(generation) if generation.is_file() else {}
    )


def _kind(settings: Settings) -> Kind:
    named = settings.values.get("architectures")
    name = named[0] if isinstance(named, list) and len(named) == 1 else None
    if name is None:  # only some of the classes of a family have logits to give; where none is named, its main one
        families = {kind.model_type: kind for kind in reversed(KINDS.values())}
        return settings.choice("model_type", families, "")
    if not isinstance(name, str) or name not in KINDS:
        raise BundleError(
            f"a model of the class {name!r:.60} cannot be imported.",
            where=str(settings.path),
            remedy=nearest(str(name)[:60], KINDS),
        )
    return KINDS[name]


def _model(kind: Kind, architecture: Architecture, weights: Weights, settings: Settings) -> nn.Module:
    """The network that is described, with the weights there; nothing is allocated before all shapes are right."""
    for name in ("encoder_layers", "decoder_layers"):
        if architecture.get(name, 0) > len(weights):  # before so many layers are made, be it without weights
            raise BundleError(
                f"it describes {architecture[name]} layers, but there are {len(weights)} tensors.",
                where=str(settings.path),
                remedy="Do config.json and weights belong together?",
            )
    try:
        with torch.device("meta"):
            described: Any = make_network(kind.network, architecture)
    except (ConfigError, TypeError, RuntimeError) as error:  # the last two: sizes beyond 64 bits
        what = error.what if isinstance(error, ConfigError) else "no model can have these sizes."
        raise BundleError(what, where=str(settings.path), remedy="This model cannot be imported.") from error
    state = state_from_theirs(kind.table(settings), weights, described, described.config)
    model = make_network(kind.network, architecture)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(interleaved(name, state[name]) if kind.interleaves else state[name])
    return model.eval()
