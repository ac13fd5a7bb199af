"""Attention as labelled numbers: every layer and head, by subwords or by words.

Shapes: L layers, H heads, S source tokens, T target tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from transduce.attention_lens.words import Labels, Word
from transduce.errors import ConfigError, nearest

__all__ = ["Alternative", "AttentionMaps", "Encoding", "Kind", "LabelledMap", "Level", "Step"]

Kind = Literal["cross", "encoder", "decoder"]
Level = Literal["words", "subwords"]
Encoding = Literal["numbers", "bytes"]
Weights = NDArray[np.float32]


@dataclass(frozen=True)
class Alternative:
    """A token that could have been written at a step, and how probable the model found it."""

    token: str
    probability: float


@dataclass(frozen=True)
class Step:
    """The writing of one token."""

    token: str
    probability: float
    alternatives: list[Alternative]
    """The most probable tokens, best first; the one written is not always among them."""


@dataclass(frozen=True, eq=False)
class LabelledMap:
    """Attention of one kind: who looks at whom."""

    values: Weights
    """[layers, heads, rows, columns]; each row sums to one."""
    rows: list[str]
    """Who looks."""
    columns: list[str]
    """What is looked at."""

    def mean(self, layers: Sequence[int] = (), heads: Sequence[int] = ()) -> Weights:
        """One map [rows, columns] for all layers and heads, or for some, which are counted from 1."""
        chosen: Weights = self.values[np.ix_(self.numbered("layer", layers), self.numbered("head", heads))]
        mean: Weights = chosen.mean((0, 1))
        return mean

    def numbered(self, what: Literal["layer", "head"], numbers: Sequence[int]) -> list[int]:
        """The places of layers or heads that are given as numbers from 1; all of them if none is given."""
        count = self.values.shape[0 if what == "layer" else 1]
        if not self.values.size:
            raise ConfigError(
                "the model has no layers with this attention.", remedy="Look at another kind: cross, encoder, decoder."
            )
        for number in numbers:
            if not 1 <= number <= count:
                close = min(max(number, 1), count)
                valid = f"{what}s are counted from 1 to {count}" if count > 1 else f"there is one {what}"
                raise ConfigError(f"there is no {what} {number}: {valid}.", remedy=f"Did you mean {close}?")
        return [number - 1 for number in numbers] or list(range(count))


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Where a model looked while it read one sentence and wrote another.

    >>> maps = translator.attention("Where is the station?")
    >>> maps.cross[layer, head, t, s]  # while writing target token t, the share of attention on source token s
    >>> maps.words()["cross"].mean()  # all layers and heads, words instead of subwords
    """

    model: str
    source_language: str | None
    target_language: str | None
    source: Labels
    target: Labels
    encoder: Weights
    """[L,H,S,S]: source tokens looking at source tokens."""
    decoder: Weights
    """[L,H,T,T]: while writing target token t, the share on each token read so far: the start, then tokens 0 … t-1."""
    cross: Weights
    """[L,H,T,S]: while writing target token t, the share on each source token."""
    steps: list[Step]
    """For each target token how probable it was, and what else was."""

    @property
    def text(self) -> str:
        """The translation."""
        return self.target.text

    def subwords(self) -> dict[Kind, LabelledMap]:
        """All maps as the model sees them, token by token."""
        return {
            kind: LabelledMap(getattr(self, kind), rows.tokens, columns.tokens)
            for kind, (rows, columns) in self._sides().items()
        }

    def words(self) -> dict[Kind, LabelledMap]:
        """All maps word by word: the mean over a word's rows, the sum over its columns; rows still sum to one."""
        return {
            kind: LabelledMap(
                _by_words(getattr(self, kind), rows.words, columns.words),
                [word.text for word in rows.words],
                [word.text for word in columns.words],
            )
            for kind, (rows, columns) in self._sides().items()
        }

    def at(self, level: Level, kind: Kind) -> LabelledMap:
        """One kind of map, by words or by subwords."""
        for name, value, choices in (("level", level, get_args(Level)), ("kind", kind, get_args(Kind))):
            if value not in choices:
                raise ConfigError(f"{name} {value!r} is unknown.", remedy=nearest(str(value), choices))
        return (self.words() if level == "words" else self.subwords())[kind]

    def as_json(self, encoding: Encoding = "numbers") -> dict[str, Any]:
        """Everything as plain values for JSON; weights as numbers of four digits, or compactly as bytes (255 is 1)."""
        if encoding not in get_args(Encoding):
            raise ConfigError(f"encoding {encoding!r} is unknown.", remedy=nearest(str(encoding), get_args(Encoding)))
        return {
            "model": self.model,
            "source_language": self.source_language,
            "target_language": self.target_language,
            "source": asdict(self.source),
            "target": asdict(self.target),
            "maps": {kind: _encoded(getattr(self, kind), encoding) for kind in ("encoder", "decoder", "cross")},
            "steps": [asdict(step) for step in self.steps],
        }

    def _sides(self) -> dict[Kind, tuple[Labels, Labels]]:
        """The labels of each kind's rows and columns."""
        return {
            "cross": (self.target, self.source),
            "encoder": (self.source, self.source),
            "decoder": (self.target, self.target.shifted()),
        }


def _by_words(values: Weights, rows: Sequence[Word], columns: Sequence[Word]) -> Weights:
    """[..., tokens, tokens] to [..., words, words]."""
    lengths = np.array([word.last - word.first + 1 for word in rows], dtype=np.float32)
    summed: Weights = np.add.reduceat(values, [word.first for word in columns], axis=-1)
    summed = np.add.reduceat(summed, [word.first for word in rows], axis=-2)
    return summed / lengths[:, None]


def _encoded(values: Weights, encoding: Encoding) -> dict[str, Any]:
    shape = list(values.shape)
    if encoding == "bytes":
        return {"shape": shape, "bytes": base64.b64encode(np.rint(values * 255).astype(np.uint8).tobytes()).decode()}
    return {"shape": shape, "numbers": np.round(values.astype(np.float64), 4).tolist()}
