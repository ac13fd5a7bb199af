"""Our models as directories that Hugging Face's `transformers` loads: each as the class that computes the same.

Of encoder-decoders, post-norm ones with the paper's sinusoids are MarianMT there, pre-norm ones Pegasus; what was
imported goes back to what it was. Biases that a class has and a model of ours has not are written as zeros.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save
from torch import Tensor, nn

from transduce.errors import ConfigError
from transduce.interop.dimension import side_by_side_order
from transduce.interop.equivalents import equivalent_shapes, in_shape
from transduce.interop.huggingface import KINDS
from transduce.interop.kinds.kind import Kind
from transduce.interop.names import state_to_theirs
from transduce.interop.settings import Settings
from transduce.model import Transformer, TransformerConfig
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderOnly
from transduce.model.family import Network
from transduce.model.vision import VisionTransformer
from transduce.storage import directory_aside, write_whole

__all__ = ["KNOWN_BY", "export_huggingface", "huggingface_kind"]

NETWORKS: dict[type[nn.Module], Network] = {
    Transformer: "transformer",
    LanguageModel: "decoder-only",
    EncoderOnly: "encoder-only",
    VisionTransformer: "vision",
}
KNOWN_BY = ("source.spm", "tokenizer.json", "preprocessor_config.json")
"""What exported models have, and no model directory of ours: by one of these they are known."""


def export_huggingface(
    model: nn.Module,
    directory: Path,
    settings: Mapping[str, Any] | None = None,
    files: Mapping[str, bytes] | None = None,
) -> Kind:
    """Write a directory of a model, aside and then renamed; `settings` go into config.json, `files` beside it.

    Returns what kind of model it is there. A model that has no counterpart is refused with the reason.
    """
    kind, described = huggingface_kind(model)
    shaped = in_shape(model, described)
    config = shaped.config
    values = {"architectures": [kind.architecture], "dtype": "float32", **kind.settings(config), **(settings or {})}
    state = {
        name: side_by_side_order(name, value.detach()) if kind.interleaves else value.detach()
        for name, value in shaped.named_parameters()
    }
    table = kind.table(Settings(values, directory / "config.json"))
    tensors = state_to_theirs(table, state, config)
    if table.writes_fixed:
        shape = (config.max_length, config.d_model)
        tensors |= {name: formula(shape, config) for name, formula in table.fixed.items()}
    if kind.embeddings is not None:
        tensors = _with_embeddings(tensors, kind, shaped)
    contents = {
        "config.json": json.dumps(values, indent=2).encode() + b"\n",
        "model.safetensors": save(tensors, metadata={"format": "pt"}),
        **(files or {}),
    }
    with directory_aside(directory, KNOWN_BY, "an exported model") as aside:
        for name, content in contents.items():
            write_whole(aside / name, content)
    return kind


def huggingface_kind(model: nn.Module) -> tuple[Kind, TransformerConfig]:
    """What a model is there, and in which shape it computes the same there; or an error that says why not."""
    network = NETWORKS.get(type(model))
    config = getattr(model, "config", None)
    if network is None or not isinstance(config, TransformerConfig):
        raise ConfigError(
            "Hugging Face's transformers has no counterpart of this network.", remedy="Export a Transformer."
        )
    kinds = [kind for kind in KINDS.values() if kind.network == network and not _other_head(kind, config)]
    refused: list[ConfigError] = []
    for shape in equivalent_shapes(config, network):
        for kind in kinds:
            try:
                kind.settings(shape)
                return kind, shape
            except ConfigError as error:
                refused.append(error)
    # Only of what comes nearest, by the settings that would have to be others.
    nearest = min(refused, key=lambda error: (error.remedy or "").count("model."))
    raise ConfigError(
        f"Hugging Face's transformers has no counterpart of this model; {nearest.what}",
        remedy=nearest.remedy or "Train it in such a shape.",
    )


def _other_head(kind: Kind, config: TransformerConfig) -> bool:
    """Whether an encoder's kind tells something else than this one."""
    heads = {"BertForMaskedLM": "masked", "BertForSequenceClassification": "sentence"}
    head = getattr(config, "head", None)
    return head is not None and heads.get(kind.architecture, "token") != head


def _with_embeddings(tensors: dict[str, Tensor], kind: Kind, model: Transformer) -> dict[str, Tensor]:
    """With the three matrices of an encoder-decoder under all names by which some version of theirs looks for them."""
    names, tying = kind.embeddings, model.config.tying
    assert names is not None
    weights: dict[str, Tensor] = {
        names.shared: model.source_embedding.tokens.weight,
        names.source.split(" | ")[0]: model.source_embedding.tokens.weight,
        names.target.split(" | ")[0]: model.target_embedding.tokens.weight,
        names.output.split(" | ")[0]: model.projection.weight,
    }
    shared, source, target, output = weights
    if tying == "all":
        kept = [shared]
    elif names.apart and tying == "target":
        kept = [source, target]
    elif names.apart and tying == "none":
        kept = [source, target, output]
    else:
        kept = [shared, source, target, output]
    found = {name: value for name, value in tensors.items() if name not in weights}
    for name in kept:
        weight = weights[name].detach().float().cpu()
        found[name] = side_by_side_order("tokens.weight", weight) if kind.interleaves else weight.clone()
    if kind.zeros is not None and kind.zeros not in found:
        found[kind.zeros] = torch.zeros(1, model.config.output_size)
    return found
