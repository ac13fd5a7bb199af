"""How tensors of other networks become ours where it takes more than a name; each is undone exactly for export.

Shapes: D model, V vocabulary, T positions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from transduce.errors import ConfigError
from transduce.interop.names import Join, Place
from transduce.model import TransformerConfig

__all__ = ["ROW", "STACKED", "TRANSPOSED", "Computed", "Scaled", "Stacked", "WithoutFirst"]


@dataclass(frozen=True)
class Stacked(Join):
    """W^Q, W^K and W^V under each other; W^Q scaled, where the other network divides scores by something else."""

    query_scale: Callable[[Place], float] = lambda place: 1.0

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """Three matrices, or biases, as one."""
        query, key, value = parts
        return torch.cat((query * self.query_scale(place), key, value))

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """One as three."""
        config = place.config
        keys = config.key_value_groups * config.key_width
        widths = [config.heads * config.key_width, keys, config.key_value_groups * config.value_width]
        query, key, value = torch.split(whole, widths)
        return [query / self.query_scale(place), key, value]


STACKED = Stacked()


@dataclass(frozen=True)
class Transposed(Join):
    """A matrix written [in, out]."""

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """As [out, in]."""
        (part,) = parts
        return part.T

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """As [in, out]."""
        return [whole.T]


TRANSPOSED = Transposed()


@dataclass(frozen=True)
class OneRow(Join):
    """A vector written as a matrix [1, V]."""

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """As a vector."""
        (part,) = parts
        return part.squeeze(0)

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """As a matrix."""
        return [whole.unsqueeze(0)]


ROW = OneRow()


@dataclass(frozen=True)
class WithoutFirst(Join):
    """Learned positions [T + unused, D] of which the first are never looked at."""

    unused: int

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """Without those."""
        (part,) = parts
        return part[self.unused :]

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """With zeros for those."""
        return [torch.cat((whole.new_zeros(self.unused, whole.size(1)), whole))]


@dataclass(frozen=True)
class Scaled(Join):
    """A weight that stands for itself and for a scale that the other network applies after it."""

    scale: Callable[[Place], float]

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """The weight times the scale."""
        (part,) = parts
        return part * self.scale(place)

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """The weight alone."""
        return [whole / self.scale(place)]


@dataclass(frozen=True)
class Computed(Join):
    """A table of positions that the other network computes and ours keeps as learned ones."""

    table: Callable[[TransformerConfig], Tensor]

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """The table, made of nothing."""
        return self.table(place.config)

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """Nothing, if the table still is what it was."""
        if not torch.allclose(whole, self.table(place.config), atol=1e-5):
            raise ConfigError(
                "positions: they have been trained, and this kind of model computes them.",
                remedy="Export the model as it was before, or to another format.",
            )
        return []
