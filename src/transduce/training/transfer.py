"""Start from what another model has learned: its encoder, its decoder, or all of it."""

from __future__ import annotations

from collections.abc import Mapping

import torch
from torch import Tensor, nn

from transduce.bundle import Bundle
from transduce.errors import ConfigError
from transduce.model.family import Network
from transduce.training.events import Transferred

__all__ = ["transfer"]

ALONE: dict[str, dict[str, str]] = {
    "encoder-only": {"source_embedding.": "embedding.", "encoder.": "encoder."},
    "decoder-only": {
        "target_embedding.": "embedding.",
        "decoder.layers.": "layers.",
        "decoder.norm.": "norm.",
        "decoder.positions.": "positions.",
        "projection.": "projection.",
    },
}
"""What the parts of a whole Transformer are called in a network that has only one of its stacks."""


@torch.no_grad()
def transfer(bundle: Bundle, model: nn.Module, network: Network) -> Transferred:
    """Give a new model every weight of another that it has too, by name and shape; the others stay as drawn."""
    # Tied weights have several names in a state, and only the first among the parameters.
    found = _renamed(bundle.module().state_dict(), bundle.config.network, network)
    state = model.state_dict()
    taken, fresh = [], []
    for name, value in state.items():
        if name in found and found[name].shape == value.shape:
            value.copy_(found[name])
            taken.append(name)
        else:
            fresh.append(name)
    # A bias may fit by chance where no matrix does.
    layers = [name for name in taken if ".layers." in f".{name}" and state[name].dim() > 1]
    if not layers:
        raise ConfigError(
            f"nothing of the {bundle.config.network} model there fits into a {network} model of this shape.",
            where=str(bundle.path),
            remedy="Leave out settings of model.*: its shape is then taken over.",
        )
    return Transferred(str(bundle.path), len(taken), fresh)


def _renamed(state: Mapping[str, Tensor], old: str, new: str) -> dict[str, Tensor]:
    """A network's weights by the names that another kind of network has for them."""
    if old == new:
        return dict(state)
    if old in ALONE and new in ALONE:  # an encoder's layers are a decoder's that stands alone
        whole = {"encoder.layers.": "layers.", "encoder.norm.": "norm.", "embedding.": "embedding."}
        names = whole if old == "encoder-only" else {ours: theirs for theirs, ours in whole.items()}
    else:
        names = ALONE.get(new) or {ours: theirs for theirs, ours in ALONE.get(old, {}).items()}
    renamed = {}
    for name, value in state.items():
        for before, after in names.items():
            if name.startswith(before):
                renamed[after + name.removeprefix(before)] = value
    return renamed
