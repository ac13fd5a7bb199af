"""Attention as labelled numbers: every layer and head, by subwords or by words.

Shapes: L layers, H heads, S source tokens, T target tokens.
"""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from transduce.attention_lens.words import Labels, Word
from transduce.errors import ConfigError, nearest

__all__ = [
    "Alternative",
    "AttentionMaps",
    "Encoding",
    "Guess",
    "Kind",
    "LabelledMap",
    "Level",
    "Step",
    "Weights",
    "encoded",
    "kind_among",
]

Kind = Literal["cross", "encoder", "decoder"]
Level = Literal["words", "subwords"]
Encoding = Literal["numbers", "bytes"]
Weights = NDArray[np.float32]


@dataclass(frozen=True)
class Alternative:
    """A token (or tag, or label) that could stand in a place, and how probable the model found it."""

    token: str
    probability: float


@dataclass(frozen=True)
class Step:
    """The writing of one token."""

    token: str
    probability: float
    alternatives: list[Alternative]
    """The most probable tokens, best first; the one written is not always among them."""


@dataclass(frozen=True)
class Guess:
    """What a model says of something that it has read and did not write."""

    what: Literal["mask", "tag", "label", "next"]
    """A token that is masked, the tag of a token, the label of the whole, or the token that comes after the text."""
    place: int | None
    """The token that it is about; None where it is about the whole, or what comes after it."""
    alternatives: list[Alternative]
    """The most probable ones, best first."""


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
        for number in numbers:
            if not 1 <= number <= count:
                close = min(max(number, 1), count)
                valid = f"{what}s are counted from 1 to {count}" if count > 1 else f"there is one {what}"
                raise ConfigError(f"there is no {what} {number}: {valid}.", remedy=f"Did you mean {close}?")
        return [number - 1 for number in numbers] or list(range(count))


@dataclass(frozen=True, eq=False)
class AttentionMaps:
    """Where a model looked while it read one sentence and wrote another, or did one of the two.

    >>> maps = translator.attention("Where is the station?")
    >>> maps.cross[layer, head, t, s]  # while writing target token t, the share of attention on source token s
    >>> maps.words()["cross"].mean()  # all layers and heads, words instead of subwords

    A model that only reads has a source and encoder maps, one that only writes a target and decoder maps: `kinds` says
    which there are. The others have no layers.
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
    guesses: list[Guess] = field(default_factory=list)
    """What a model that only reads says of the text, and what a language model holds to come next."""

    @property
    def text(self) -> str:
        """What was written, such as the translation; of a model that only reads, what it read."""
        return self.target.text if self.target.tokens else self.source.text

    @property
    def title(self) -> str:
        """What was looked at."""
        return self.source.text if self.source.tokens else self.target.text

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of attention that the model has."""
        kinds: tuple[Kind, ...] = get_args(Kind)
        return [kind for kind in kinds if len(getattr(self, kind))]

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
        if level not in get_args(Level):
            raise ConfigError(f"level {level!r} is unknown.", remedy=nearest(str(level), get_args(Level)))
        kind = kind_among(self.kinds, kind)
        return (self.words() if level == "words" else self.subwords())[kind]

    def as_json(self, encoding: Encoding = "numbers") -> dict[str, Any]:
        """Everything as plain values for JSON; weights as numbers of four digits, or compactly as bytes (255 is 1)."""
        return {
            "model": self.model,
            "source_language": self.source_language,
            "target_language": self.target_language,
            "source": asdict(self.source),
            "target": asdict(self.target),
            "maps": {kind: encoded(getattr(self, kind), encoding) for kind in self.kinds},
            "steps": [asdict(step) for step in self.steps],
            "guesses": [asdict(guess) for guess in self.guesses],
        }

    def _sides(self) -> dict[Kind, tuple[Labels, Labels]]:
        """The labels of each kind's rows and columns, for the kinds that there are."""
        sides: dict[Kind, tuple[Labels, Labels]] = {
            "cross": (self.target, self.source),
            "encoder": (self.source, self.source),
            "decoder": (self.target, self.target.shifted()),
        }
        return {kind: sides[kind] for kind in self.kinds}


def kind_among(kinds: Sequence[Kind], wanted: Kind | None) -> Kind:
    """The kind of attention that is wanted, else the first; one that the model does not have is refused."""
    if wanted in kinds or (wanted is None and kinds):
        return wanted or kinds[0]
    if wanted is not None and wanted not in get_args(Kind):
        raise ConfigError(f"kind {wanted!r} is unknown.", remedy=nearest(str(wanted), kinds))
    raise ConfigError(
        f"the model has no {wanted or 'layers with'} attention.", remedy=f"It has: {', '.join(kinds) or 'none'}."
    )


def _by_words(values: Weights, rows: Sequence[Word], columns: Sequence[Word]) -> Weights:
    """[..., tokens, tokens] to [..., words, words]."""
    lengths = np.array([word.last - word.first + 1 for word in rows], dtype=np.float32)
    summed: Weights = np.add.reduceat(values, [word.first for word in columns], axis=-1)
    summed = np.add.reduceat(summed, [word.first for word in rows], axis=-2)
    return summed / lengths[:, None]


def encoded(values: NDArray[Any], encoding: Encoding) -> dict[str, Any]:
    """Values from 0 to 1 for JSON, or whole ones from 0 to 255, with their shape."""
    if encoding not in get_args(Encoding):
        raise ConfigError(f"encoding {encoding!r} is unknown.", remedy=nearest(str(encoding), get_args(Encoding)))
    shape = list(values.shape)
    if encoding == "numbers":
        whole = values.dtype == np.uint8
        return {"shape": shape, "numbers": values.tolist() if whole else np.round(values.astype(float), 4).tolist()}
    whole_values = values if values.dtype == np.uint8 else np.rint(values * 255).astype(np.uint8)
    return {"shape": shape, "bytes": base64.b64encode(whole_values.tobytes()).decode()}
