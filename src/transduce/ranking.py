"""Which hypothesis of a search is taken, where that is not simply the most probable one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple, Protocol

from transduce.bundle import Bundle
from transduce.errors import ConfigError
from transduce.text import Vocabularies
from transduce.text.languages import same_language

if TYPE_CHECKING:
    from transduce.engines.engine import Engine

__all__ = ["Candidates", "Consensus", "Ranking", "WayBack", "check_way_back"]

WAY_BACK_WEIGHT = 1.0
"""λ of the way back: each direction counts the same. From 0.5 on it makes little of a difference (docs/log.md)."""


class Candidates(NamedTuple):
    """What a search has found for one sentence."""

    source: str
    texts: list[str]
    scores: list[float]
    """Log-probabilities over length penalty."""
    sampled: bool
    """Whether they were drawn: then they come as often as they are probable, and scores say it once more."""


class Ranking(Protocol):
    """A way to choose among hypotheses."""

    def orders(self, found: Sequence[Candidates]) -> list[list[int]]:
        """For each sentence the places of its candidates, best first; all sentences in one go."""


class Consensus(Ranking):
    """First what the others agree with most: minimum Bayes risk with chrF."""

    def orders(self, found: Sequence[Candidates]) -> list[list[int]]:
        """For each sentence the places of its candidates, best first."""
        from transduce.evaluation.consensus import by_consensus

        return [by_consensus(each.texts, None if each.sampled else each.scores) for each in found]


class WayBack(Ranking):
    """First what leads back to the source: a model of the other direction has a say.

    The noisy channel (Yee et al., 2019), by length: score(y) + λ · log p(x | y) / |x|, where score(y) is log p(y | x)
    over the length penalty. A translation that leaves something out may be likely; the source is not, given that one.
    """

    def __init__(
        self, engine: Engine, vocabularies: Vocabularies, language: str | None = None, weight: float = WAY_BACK_WEIGHT
    ) -> None:
        """With the `engine` of the other direction's model, which writes `language` where it has to be told."""
        self._engine, self._vocabularies, self._language, self._weight = engine, vocabularies, language, weight

    def orders(self, found: Sequence[Candidates]) -> list[list[int]]:
        """For each sentence the places of its candidates, best first."""
        likely = self._likelihoods(sorted({(text, each.source) for each in found for text in each.texts if text}))
        orders = []
        for source, texts, scores, _ in found:
            back = [likely.get((text, source), -math.inf) for text in texts]  # nothing leads back from an empty text
            total = [forth + self._weight * other for forth, other in zip(scores, back, strict=True)]
            orders.append(sorted(range(len(texts)), key=total.__getitem__, reverse=True))
        return orders

    def _likelihoods(self, pairs: list[tuple[str, str]]) -> dict[tuple[str, str], float]:
        """What each translation y and source x have as log p(x | y) / |x|."""
        translations, sources = [pair[0] for pair in pairs], [pair[1] for pair in pairs]
        read = self._vocabularies.encode_sources(translations, self._language)
        written = self._vocabularies.target.encode_batch(sources)
        scored = self._engine.score(read, written, self._vocabularies.start(self._language))
        return {pair: each.log_probability / len(each.tokens) for pair, each in zip(pairs, scored, strict=True)}


def check_way_back(forth: Bundle, back: Bundle, language: str | None = None) -> None:
    """Refuse a model that does not lead back, as far as the two say what they translate.

    `language` is what is written, of a model that knows several; else it is enough that it leads back from one of them.
    """
    back.require("translation", "text-to-text")
    there, here = [language] if language else _written(forth), forth.config.source_language
    read, returned = back.config.source_language, _written(back)
    starts_elsewhere = read and there and all(same_language(each, [read]) is None for each in there)
    ends_elsewhere = here and returned and same_language(here, returned) is None
    if starts_elsewhere or ends_elsewhere:
        ways = _direction(read, returned), f"{forth.path.name} {_direction(here, there)}"
        raise ConfigError(
            f"it does not lead back: it translates {ways[0]}, and {ways[1]}.",
            where=str(back.path),
            remedy="Give a model of the other direction.",
        )


def _direction(read: str | None, written: Sequence[str]) -> str:
    """From what into what, in words; one side may be unknown."""
    return " ".join([*([f"from {read}"] if read else []), *([f"into {', '.join(written)}"] if written else [])])


def _written(bundle: Bundle) -> list[str]:
    """The languages that a model writes, as far as it says."""
    config = bundle.config
    return config.target_languages or ([config.target_language] if config.target_language else [])
