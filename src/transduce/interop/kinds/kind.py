"""What there is to know of a kind of model that another library writes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import torch

from transduce.errors import BundleError, ConfigError
from transduce.interop.names import Table
from transduce.interop.settings import Settings
from transduce.interop.weights import Weights
from transduce.model import TransformerConfig
from transduce.model.config import Tying
from transduce.model.family import Network

__all__ = ["Architecture", "Embeddings", "Kind", "has_bias", "labels_of", "must_have", "side_by_side", "tying_of"]

Architecture = dict[str, Any]
"""Fields of a network's configuration."""


@dataclass(frozen=True)
class Embeddings:
    """Where the three matrices of an encoder-decoder can stand, best first, and where one stands that is all three."""

    source: str
    target: str
    output: str
    shared: str
    apart: bool = False
    """Whether there can be no shared one."""


@dataclass(frozen=True)
class Kind:
    """One class of another library: its name there, what it is here, and the table of its weights."""

    architecture: str
    """The class, as config.json names it."""
    model_type: str
    """The family, as config.json names it."""
    network: Network
    """What it is here."""
    describe: Callable[[Settings, Weights], Architecture]
    """Our configuration, of theirs; looks at weights only where config.json does not say."""
    settings: Callable[[Any], dict[str, Any]]
    """Their configuration, of ours; raises ConfigError for what they have no counterpart of."""
    table: Callable[[Settings], Table]
    """Of its weights; some settings of theirs are in ours only as weights."""
    interleaves: bool = False
    """Whether its sinusoids stand half by half, so that its model dimension is another order of ours."""
    rename: Callable[[str], str] = lambda name: name
    """What older files call a tensor, as newer ones do."""
    embeddings: Embeddings | None = None
    """Of an encoder-decoder."""
    zeros: str | None = None
    """A bias of logits that is there even if it says nothing."""


def tying_of(weights: Weights, embeddings: Embeddings, output_tied: bool) -> Tying:
    """Which of the three matrices are one: what the file has is what counts, whatever config.json says of tying."""
    alternatives = [each.split(" | ") for each in (embeddings.source, embeddings.target, embeddings.output)]
    if not output_tied and alternatives[2][0] not in weights:
        raise BundleError(
            f"its tensors are not those that its config.json describes; missing: {alternatives[2][0]}.",
            where=str(weights.directory),
            remedy="Do config.json and weights belong together?",
        )
    source, target, output = (next((name for name in names if name in weights), None) for names in alternatives)

    def same(one: str | None, other: str | None) -> bool:
        if one is None or other is None or one == other:
            return one == other
        return weights[one].shape == weights[other].shape and torch.equal(weights.tensor(one), weights.tensor(other))

    if same(target, output):
        return "all" if same(source, target) else "target"
    return "embeddings" if same(source, target) else "none"


def must_have(family: str, config: TransformerConfig, required: Mapping[str, Any]) -> None:
    """Refuse a shape that a family of models has no counterpart of: with all that is otherwise, and what to train."""
    wrong = {name: value for name, value in required.items() if getattr(config, name) != value}
    if not wrong:
        return
    found = ", ".join(f"{name}={getattr(config, name)!r}" for name in wrong)
    wanted = " ".join(f"model.{name}={str(value).lower()}" for name, value in wrong.items())
    raise ConfigError(f"{family} models have no {found}.", remedy=f"For {family}, train with {wanted}.")


def has_bias(weights: Weights, name: str) -> bool:
    """Whether a bias is there and says anything."""
    return name in weights and bool(weights.tensor(name).any())


def labels_of(weights: Weights, name: str) -> int:
    """How many labels a head tells apart: the rows of its matrix."""
    if name not in weights or len(weights[name].shape) != 2:
        raise BundleError(f"its tensors have no {name!r}, which names what it sees.", where=str(weights.directory))
    return weights[name].shape[0]


def side_by_side(length: int, config: TransformerConfig) -> torch.Tensor:
    """The paper's sinusoids with all sines before all cosines, [length, d_model]."""
    from transduce.model import sinusoidal_positions

    table = sinusoidal_positions(length, config.d_model)
    return torch.cat((table[:, 0::2], table[:, 1::2]), dim=1)
