"""How far a translation can be trusted: a number from 0 to 1 that means something, of signs that cost nothing.

A confidence of 0.7 means: sentences with such signs came out 70 % like a human's translation (chrF), on the dev set
that the model was calibrated on. The signs are in every hypothesis of every engine, whatever its length penalty: how
probable it is, how long, and how long beside its source. `transduce.evaluation.calibration` learns the weights.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any, NamedTuple

from transduce.errors import ConfigError

__all__ = ["SIGNS", "Confidence", "Signs", "mean_confidence"]

SIGNS = ("token_probability", "sentence_probability", "length", "odd_length")
"""What a hypothesis is judged by: see the fields of Confidence that have these names."""


class Signs(NamedTuple):
    """What is known of a hypothesis without any reference."""

    log_probability: float
    """The model's, of all tokens."""
    written: int
    """Its tokens, the end of sentence included."""
    read: int
    """Those of its source, likewise."""

    @property
    def usable(self) -> bool:
        """Whether there is something to judge by."""
        return math.isfinite(self.log_probability) and self.written > 0 and self.read > 0

    @property
    def log_ratio(self) -> float:
        """The logarithm of tokens written per token read."""
        return math.log(self.written / self.read)


@dataclass(frozen=True, kw_only=True)
class Confidence:
    """A sum of signs, each with a weight; what `config.json` says of it.

    More probable is never less confident, and a length that is odd beside the source's is never more.
    """

    base: float
    """What the signs are added to."""
    token_probability: float
    """Weight of the tokens' mean probability (geometric, 0 to 1); 0 or more."""
    sentence_probability: float
    """Weight of the whole hypothesis's probability (0 to 1); 0 or more."""
    length: float
    """Weight of the logarithm of the tokens written."""
    odd_length: float
    """Weight of how far the logarithm of tokens written per token read is from the usual; 0 or less."""
    usual_ratio: float
    """That logarithm's median on the dev set."""
    shortest: int
    """Tokens of the shortest sentence of the dev set: a shorter one counts as so long."""
    longest: int
    """Tokens of the longest one: a longer one counts as so long."""

    @classmethod
    def parse(cls, values: Any) -> Confidence:
        """Read what a file says, all of it checked."""
        names = [each.name for each in fields(cls)]
        if not isinstance(values, dict) or set(values) != set(names):
            raise ConfigError("its 'confidence' is not complete.", remedy=f"It has: {', '.join(names)}.")
        for name, value in values.items():
            whole = name in ("shortest", "longest")
            if isinstance(value, bool) or not isinstance(value, int if whole else (int, float)) or not abs(value) < 1e9:
                kind = "a whole number" if whole else "a number"
                raise ConfigError(f"its confidence's {name} is {_shown(value)}.", remedy=f"It must be {kind}.")
        found = cls(**values)
        rules = {
            "token_probability": (found.token_probability >= 0, "0 or more"),
            "sentence_probability": (found.sentence_probability >= 0, "0 or more"),
            "odd_length": (found.odd_length <= 0, "0 or less"),
            "shortest": (found.shortest >= 1, "1 or more"),
            "longest": (found.longest >= found.shortest, "shortest or more"),
        }
        for name, (holds, requirement) in rules.items():
            if not holds:
                raise ConfigError(
                    f"its confidence's {name} is {getattr(found, name)}.", remedy=f"It must be {requirement}."
                )
        return found

    def values(self, signs: Signs) -> tuple[float, float, float, float]:
        """The signs as the numbers that are weighted, in the order of `SIGNS`."""
        log_probability = min(signs.log_probability, 0.0)  # rounding may put it above
        return (
            math.exp(log_probability / signs.written),
            math.exp(log_probability),
            math.log(min(max(signs.written, self.shortest), self.longest)),
            abs(signs.log_ratio - self.usual_ratio),
        )

    def of(self, signs: Signs) -> float | None:
        """From 0 to 1; None where there is nothing to judge by."""
        if not signs.usable:
            return None
        weights = (self.token_probability, self.sentence_probability, self.length, self.odd_length)
        weighted = sum(weight * value for weight, value in zip(weights, self.values(signs), strict=True))
        return min(max(self.base + weighted, 0.0), 1.0)

    def of_text(self, sentences: Sequence[Signs]) -> float | None:
        """That of a text, of its sentences' signs."""
        return mean_confidence([(self.of(each), each.written) for each in sentences])


def mean_confidence(parts: Sequence[tuple[float | None, int]]) -> float | None:
    """That of a text, of its sentences' confidences and lengths; what has no length does not count."""
    known = [(confidence, length) for confidence, length in parts if length]
    if not known or any(confidence is None for confidence, _ in known):
        return None
    return sum((confidence or 0.0) * length for confidence, length in known) / sum(length for _, length in known)


def _shown(value: Any) -> str:
    """Short enough for a message."""
    try:
        text = repr(value)
    except ValueError:  # Python writes out no number of more than some thousand digits
        return "a huge number"
    return text if len(text) <= 40 else text[:39] + "…"
