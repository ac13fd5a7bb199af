"""How to decode: one frozen record, with the paper's values as defaults (§6.1)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Any, Literal, get_args

from transduce.decoding.brackets import Brackets
from transduce.errors import ConfigError, InputError, nearest

__all__ = ["DecodingOptions", "LengthPenalty"]

LengthPenalty = Literal["gnmt", "power", "none"]

SMALLEST = {"beam": 1, "n_best": 1} | dict.fromkeys(
    ("max_length_extra", "min_length", "no_repeat_ngram", "top_k", "seed"), 0
)


@dataclass(frozen=True, kw_only=True)
class DecodingOptions:
    """What to search for. The defaults are the paper's: beam 4, length penalty α = 0.6, at most input + 50 tokens."""

    beam: int = 4
    """Hypotheses kept at each step; 1 is greedy search. Sampling does not use it."""
    n_best: int = 1
    """Hypotheses returned per sentence, at most `beam`; with sampling, the number of samples."""
    length_penalty: LengthPenalty = "gnmt"
    """Divides log-probabilities by ((5+|Y|)/6)^α (`gnmt`, the paper), by |Y|^α (`power`), or not at all."""
    alpha: float = 0.6
    """α of the length penalty; larger favours longer output."""
    max_length_ratio: float = 1.0
    """At most ratio × source tokens + extra tokens are written, the end of sentence included."""
    max_length_extra: int = 50
    """See `max_length_ratio`."""
    min_length: int = 0
    """Tokens to write before the sentence may end."""
    start: Sequence[int] = ()
    """Tokens that the model reads behind the first one and before it writes, such as the tag of a language. They are no
    part of what is written, of its length or of its score."""
    prefix: Sequence[int] | Sequence[Sequence[int]] = ()
    """Tokens every hypothesis starts with; or one such sequence per sentence."""
    suppress: Sequence[int] = ()
    """Tokens never to write, such as those for padding or unknown words."""
    brackets: Brackets | None = None
    """What is written is a tree over each sentence's words: always balanced, never cut off."""
    no_repeat_ngram: int = 0
    """No n-gram of this size is written twice; 0 is off."""
    repetition_penalty: float = 1.0
    """Multiplies the log-probability of tokens already written; above 1 discourages them."""
    approximate: bool = False
    """An engine may keep to the two above in its own way, and leave output at the length limit as it stands there,
    instead of handing both to a slower one that is exact."""
    sampling: bool = False
    """Draw tokens at random instead of searching for the most probable sentence."""
    temperature: float = 1.0
    """Of sampling: below 1 sharpens the distribution, above 1 flattens it."""
    top_k: int = 0
    """Sample from the k most probable tokens only; 0 is off."""
    top_p: float = 1.0
    """Sample from the fewest tokens that hold this share of probability."""
    seed: int = 0
    """Of sampling. The same seed and sentence give the same samples, whatever else is in the batch."""

    def replace(self, **overrides: Any) -> DecodingOptions:
        """The same options with some changed; an unknown name is answered with the nearest one."""
        known = {field.name for field in fields(self)}
        for name in overrides:
            if name not in known:
                raise ConfigError(f"{name!r} is not a decoding option.", remedy=nearest(name, known))
        return replace(self, **overrides)

    def prefixes(self, sentences: int) -> list[list[int]]:
        """The prefix of each sentence."""
        if not self.prefix or isinstance(self.prefix[0], int):
            return [list(self.prefix)] * sentences  # type: ignore[arg-type]
        if len(self.prefix) != sentences:
            raise InputError(
                f"{len(self.prefix)} prefixes for {sentences} sentences.",
                remedy="Give one prefix for all, or one for each sentence (an empty one for none).",
            )
        return [list(prefix) for prefix in self.prefix]  # type: ignore[arg-type]

    def of(self, sentences: Sequence[int], total: int) -> DecodingOptions:
        """The options of some of `total` sentences: those that are one a sentence are picked out."""
        prefix, brackets = self.prefix, self.brackets
        if prefix and not isinstance(prefix[0], int):
            prefixes = self.prefixes(total)
            prefix = [prefixes[index] for index in sentences]
        if brackets is not None:
            brackets.check_count(total)
            brackets = brackets.of(sentences)
        return self if prefix is self.prefix and brackets is None else replace(self, prefix=prefix, brackets=brackets)

    def max_length(self, source_length: int) -> int:
        """The limit, end of sentence included, for a source of this many tokens."""
        return int(self.max_length_ratio * source_length + self.max_length_extra)

    def __post_init__(self) -> None:
        if self.length_penalty not in get_args(LengthPenalty):
            raise ConfigError(
                f"length_penalty={self.length_penalty!r} is unknown.",
                remedy=nearest(str(self.length_penalty), get_args(LengthPenalty)),
            )
        for name, smallest in SMALLEST.items():
            value = getattr(self, name)
            holds = isinstance(value, int) and value >= smallest
            self._require(name, holds, f"a whole number, {smallest} or more")
        self._require("max_length_ratio", self.max_length_ratio >= 0, "0 or more")
        self._require("repetition_penalty", self.repetition_penalty > 0, "above 0 (1 is off)")
        self._require("temperature", self.temperature > 0, "above 0; for the most probable token, use beam=1")
        self._require("top_p", 0 < self.top_p <= 1, "above 0 and at most 1 (1 is off)")
        self._check_together()

    def _require(self, name: str, holds: bool, requirement: str) -> None:
        if not holds:
            raise ConfigError(f"{name}={getattr(self, name)} cannot work.", remedy=f"It must be {requirement}.")

    def _check_together(self) -> None:
        if self.max_length_ratio == 0 and self.max_length_extra == 0:
            raise ConfigError(
                "max_length_ratio=0 and max_length_extra=0 leave no token to write.",
                remedy="Raise one of them.",
            )
        if self.brackets is not None:
            self._check_brackets(self.brackets)
        if not self.sampling and self.n_best > self.beam:
            raise ConfigError(
                f"n_best={self.n_best} asks for more hypotheses than beam={self.beam} keeps.",
                remedy=f"Use beam={self.n_best} or more.",
            )
        if not self.sampling:
            for name, off in (("temperature", 1.0), ("top_k", 0), ("top_p", 1.0), ("seed", 0)):
                if getattr(self, name) != off:
                    raise ConfigError(
                        f"{name}={getattr(self, name)} has no effect with sampling=False.",
                        remedy=f"Set sampling=True, or leave {name} at {off}.",
                    )

    def _check_brackets(self, brackets: Brackets) -> None:
        if not isinstance(brackets, Brackets):
            raise ConfigError(f"brackets={brackets!r} cannot work.", remedy="Give a Brackets, or None.")
        for name in ("min_length", "no_repeat_ngram"):
            if getattr(self, name):
                raise ConfigError(
                    f"{name}={getattr(self, name)} and brackets cannot both be kept to.", remedy=f"Set {name}=0."
                )
        needed = {*brackets.closings, *brackets.leaves}
        if needed & set(self.suppress) or set(brackets.openings) <= set(self.suppress):
            raise ConfigError(
                "suppress forbids what every tree needs: a word, a closing bracket or all opening ones.",
                remedy="Suppress no more than some opening brackets.",
            )
