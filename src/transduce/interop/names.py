"""Weight maps: a table a kind, of what a tensor is called there and here, and how one becomes the other.

Each table is read in both directions. What can be said by weights is said by weights: a scale that another network
applies and ours does not is multiplied into a matrix, a vector that it adds to each position is added to the positions.
So the network here stays the paper's, and computes the same.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

import torch
from torch import Tensor, nn

from transduce.errors import BundleError
from transduce.interop.weights import Weights
from transduce.model import TransformerConfig

__all__ = [
    "SAME",
    "Join",
    "Place",
    "Row",
    "Table",
    "affine",
    "state_from_theirs",
    "state_to_theirs",
]


@dataclass(frozen=True)
class Place:
    """Where a tensor of ours stands: what a join may need to know."""

    config: TransformerConfig
    """Of the tensor's side: the decoder's may have other heads."""
    layer: int = 0
    """Counted from 0."""


@dataclass(frozen=True)
class Join:
    """How their tensors become one of ours, and back; this one leaves a tensor as it is."""

    def joined(self, parts: Sequence[Tensor], place: Place) -> Tensor:
        """Ours of theirs. Also called with tensors that have a shape and no numbers, to check shapes."""
        (part,) = parts
        return part

    def parted(self, whole: Tensor, place: Place) -> list[Tensor]:
        """Theirs of ours."""
        return [whole]


SAME = Join()


@dataclass(frozen=True)
class Row:
    """One tensor of ours and where it comes from."""

    ours: str
    """Its name, with {n} for the number of a layer."""
    theirs: tuple[str, ...]
    """The names of its parts; "a | b" is a, or where there is no a, b."""
    join: Join = SAME
    optional: bool = False
    """Whether zeros take its place where there is none of the parts."""
    writes: tuple[str, ...] = ()
    """What it is called in an export, by all of these, if not by the first of its names."""


@dataclass(frozen=True)
class Table:
    """All rows of a kind, by our name, and what may be there besides."""

    rows: Mapping[str, Row]
    harmless: tuple[str, ...] = ()
    """Patterns of tensors that are read by nobody: masks, counts, parts of heads that are not ours."""
    fixed: Mapping[str, Callable[[tuple[int, ...], TransformerConfig], Tensor]] = field(default_factory=dict)
    """Tensors that must be what a formula says, which is computed here: for each the formula."""
    writes_fixed: bool = False
    """Whether those are in files nevertheless."""

    @classmethod
    def of(cls, rows: Iterable[Row], **besides: object) -> Table:
        """A table of these rows."""
        return cls({row.ours: row for row in rows}, **besides)  # type: ignore[arg-type]

    def row(self, name: str) -> Row | None:
        """The row of one of our names, with the number of its layer put in."""
        found = self.rows.get(re.sub(r"\.\d+\.", ".{n}.", name))
        if found is None:
            return None
        number = str(_layer(name))
        theirs = tuple(each.replace("{n}", number) for each in found.theirs)
        return replace(found, ours=name, theirs=theirs)


def affine(ours: str, theirs: str | Sequence[str], join: Join = SAME, bias: Join = SAME) -> list[Row]:
    """Rows of a weight and a bias."""
    names = (theirs,) if isinstance(theirs, str) else tuple(theirs)
    return [
        Row(f"{ours}.weight", tuple(f"{name}.weight" for name in names), join),
        Row(f"{ours}.bias", tuple(f"{name}.bias" for name in names), bias),
    ]


def state_from_theirs(table: Table, weights: Weights, model: nn.Module, config: TransformerConfig) -> dict[str, Tensor]:
    """Our parameters from their tensors. Names and shapes are compared with `model` before any tensor is read.

    Every tensor of theirs that is missing, that nothing here takes or that has another shape is named.
    """
    sources: dict[str, tuple[Row, list[str] | None]] = {}
    claimed: set[str] = set()
    missing: list[str] = []
    expected = {name: tuple(value.shape) for name, value in model.named_parameters()}
    for name in model.state_dict():  # which has tied weights by all their names
        row = table.row(name)
        if row is None:
            raise BundleError(f"nothing there is our {name!r}.", where=str(weights.directory))
        choices = [part.split(" | ") for part in row.theirs]
        claimed |= {each for alternatives in choices for each in alternatives}
        if name not in expected:
            continue
        found = [next((each for each in alternatives if each in weights), None) for alternatives in choices]
        if row.optional and not any(found):
            sources[name] = (row, None)
        elif None in found:
            missing += [each[0] for each, present in zip(choices, found, strict=True) if present is None]
        else:
            sources[name] = (row, [each for each in found if each is not None])
    fixed = [name for name in weights if name in table.fixed]
    unused = [name for name in weights if name not in claimed and name not in fixed and not _harmless(table, name)]
    _check_names(weights, missing, unused)
    for name in fixed:
        _check_fixed(table, weights, name, config)

    def place(name: str) -> Place:
        return Place(config.decoder_side if name.startswith("decoder.") else config, _layer(name))

    for name, (row, names) in sources.items():
        if names is not None:
            _check_shape(weights, row, names, place(name), expected[name])
    return {
        name: torch.zeros(expected[name])
        if names is None
        else row.join.joined([weights.tensor(each) for each in names], place(name))
        for name, (row, names) in sources.items()
    }


def state_to_theirs(table: Table, state: Mapping[str, Tensor], config: TransformerConfig) -> dict[str, Tensor]:
    """Their tensors from our parameters, which `state` has each once."""
    found: dict[str, Tensor] = {}
    for name, value in state.items():
        row = table.row(name)
        assert row is not None, f"{name}: an export is checked before"
        place = Place(config.decoder_side if name.startswith("decoder.") else config, _layer(name))
        parts = row.join.parted(value.detach().float().cpu(), place)
        parts *= max(1, len(row.writes))
        names = row.writes or [each.split(" | ")[0] for each in row.theirs]
        found |= {each: part.contiguous().clone() for each, part in zip(names, parts, strict=True)}
    return found


def _layer(name: str) -> int:
    number = re.search(r"\.(\d+)\.", name)
    return int(number[1]) if number else 0


def _harmless(table: Table, name: str) -> bool:
    return any(re.fullmatch(pattern, name) for pattern in table.harmless)


def _check_names(weights: Weights, missing: list[str], unused: list[str]) -> None:
    wrong = []
    if missing:
        wrong.append(f"missing: {', '.join(missing)}")
    if unused:
        wrong.append(f"of no use here: {', '.join(sorted(unused))}")
    if wrong:
        raise BundleError(
            f"its tensors are not those that its config.json describes; {'; '.join(wrong)}.",
            where=str(weights.directory),
            remedy="Do config.json and weights belong together?",
        )


def _check_shape(weights: Weights, row: Row, names: list[str], place: Place, expected: tuple[int, ...]) -> None:
    """Join tensors without numbers, and see whether the shape is ours."""
    shapes = [weights[name].shape for name in names]
    try:
        found = tuple(row.join.joined([torch.empty(shape, device="meta") for shape in shapes], place).shape)
    except (RuntimeError, IndexError, ValueError):
        found = None
    if found != expected:
        shown = " and ".join(f"{name!r} of shape {list(shape)}" for name, shape in zip(names, shapes, strict=True))
        raise BundleError(
            f"{shown} cannot be {row.ours!r} of shape {list(expected)}, as its config.json describes it.",
            where=str(weights.directory),
            remedy="Do config.json and weights belong together?",
        )


def _check_fixed(table: Table, weights: Weights, name: str, config: TransformerConfig) -> None:
    shape = weights[name].shape
    wrong = len(shape) != 2 or shape[1] != config.d_model
    if wrong or not torch.allclose(weights.tensor(name), table.fixed[name](shape, config), atol=1e-4):
        raise BundleError(
            f"{name!r} is not the sinusoids of its kind.",
            where=str(weights.directory),
            remedy="This model was changed in a way that cannot be imported.",
        )
