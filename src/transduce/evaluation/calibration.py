"""Does a confidence keep its word? Learning it from a dev set, and measuring how far it is off.

What is predicted is the sentence's chrF, from 0 to 1. The weights of four signs are found by least squares, drawn a
little towards 0, so that a few hundred sentences are enough; curves on top of it gained nothing (docs/log.md).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from transduce.confidence import SIGNS, Confidence, Signs
from transduce.errors import InputError
from transduce.evaluation.scorers import check_lines, scorer

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Numbers = NDArray[np.float64]

__all__ = ["FEWEST", "Calibration", "calibration_of", "cross_fitted", "fit_confidence", "sentence_chrf"]

FEWEST = 50
"""Texts that it takes to learn a confidence."""
BINS = 10
FOLDS = 5
RIDGE = 1.0
"""What draws the weights of signs towards 0, in texts: as if so many had shown no connection."""
DIGITS = 6
AT_LEAST_0, AT_MOST_0 = ("token_probability", "sentence_probability"), ("odd_length",)


@dataclass(frozen=True)
class Calibration:
    """How far a confidence is off."""

    error: float
    """Sorted by confidence and cut into ten parts of equal size: the mean distance between a part's mean confidence
    and its mean chrF, both from 0 to 1. Chance alone gives about 0.01 on 2,000 sentences, 0.03 on 200."""
    sentences: int
    confidence: float
    """The mean of all."""
    chrf: float
    """The mean of the sentences' own, from 0 to 1."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return asdict(self)


def sentence_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> list[float]:
    """The chrF2 of each sentence by itself, from 0 to 1."""
    check_lines(hypotheses=hypotheses, references=references)
    judge = scorer("chrf")
    pairs = zip(hypotheses, references, strict=True)
    return [float(judge.sentence_score(hypothesis, [reference]).score) / 100 for hypothesis, reference in pairs]


def calibration_of(confidences: Sequence[float | None], scores: Sequence[float]) -> Calibration | None:
    """How far confidences are off from the scores that the texts had; None if none has a confidence."""
    import numpy as np

    known = [(one, score) for one, score in zip(confidences, scores, strict=True) if one is not None]
    if not known:
        return None
    table = np.array(sorted(known, key=lambda each: each[0]))
    parts = np.array_split(table, min(BINS, len(table)))
    error = np.mean([abs(part[:, 0].mean() - part[:, 1].mean()) for part in parts])
    return Calibration(float(error), len(table), float(table[:, 0].mean()), float(table[:, 1].mean()))


def fit_confidence(signs: Sequence[Sequence[Signs]], scores: Sequence[float]) -> Confidence:
    """Learn a confidence from texts, each as the signs of its sentences, and the score from 0 to 1 that each had."""
    return _fitted(_usable(signs, scores))


def cross_fitted(signs: Sequence[Sequence[Signs]], scores: Sequence[float]) -> Calibration:
    """How far a confidence learned from such texts is off on others: each fifth is judged by the other four."""
    known = _usable(signs, scores)
    confidences: list[float | None] = [None] * len(known)
    for fold in range(FOLDS):
        confidence = _fitted([text for place, text in enumerate(known) if place % FOLDS != fold])
        for place in range(fold, len(known), FOLDS):
            confidences[place] = confidence.of_text(known[place][0])
    measured = calibration_of(confidences, [score for _, score in known])
    assert measured is not None, "texts whose signs are usable have confidences"
    return measured


def _usable(signs: Sequence[Sequence[Signs]], scores: Sequence[float]) -> list[tuple[Sequence[Signs], float]]:
    """The texts that tell something, which must be enough."""
    pairs = zip(signs, scores, strict=True)
    known = [(mine, score) for mine, score in pairs if mine and all(each.usable for each in mine)]
    if len(known) < FEWEST:
        raise InputError(
            f"{len(known)} texts are too few to learn a confidence from.", remedy=f"Give at least {FEWEST}."
        )
    return known


def _fitted(texts: Sequence[tuple[Sequence[Signs], float]]) -> Confidence:
    import numpy as np

    sentences = [each for mine, _ in texts for each in mine]
    lengths = [each.written for each in sentences]
    plain = Confidence(
        base=0.0,
        **dict.fromkeys(SIGNS, 0.0),
        usual_ratio=round(float(np.median([each.log_ratio for each in sentences])), DIGITS),
        shortest=min(lengths),
        longest=max(lengths),
    )
    values = np.array([np.average([plain.values(s) for s in mine], 0, [s.written for s in mine]) for mine, _ in texts])
    scores = np.array([score for _, score in texts])
    weights = _weights(values, scores)
    base = float(scores.mean() - values.mean(0) @ weights)
    found = {name: round(float(weight), DIGITS) for name, weight in zip(SIGNS, weights, strict=True)}
    return Confidence(**(asdict(plain) | found | {"base": round(base, DIGITS)}))


def _weights(values: Numbers, scores: Numbers) -> Numbers:
    """Least squares over standardised signs; a sign whose weight would come out on the wrong side is left out."""
    import numpy as np

    spread = values.std(0)
    spread[spread < 1e-9] = np.inf  # what is the same everywhere tells nothing
    standard = (values - values.mean(0)) / spread
    used = [place for place in range(len(SIGNS)) if np.isfinite(spread[place])]
    while True:
        weights = np.zeros(len(SIGNS))
        mine = standard[:, used]
        weights[used] = np.linalg.solve(mine.T @ mine + RIDGE * np.eye(len(used)), mine.T @ (scores - scores.mean()))
        wrong = [place for place in used if _on_wrong_side(SIGNS[place], weights[place])]
        if not wrong:
            found: Numbers = weights / spread
            return found
        used.remove(max(wrong, key=lambda place: abs(weights[place])))


def _on_wrong_side(sign: str, weight: float) -> bool:
    return weight < 0 if sign in AT_LEAST_0 else sign in AT_MOST_0 and weight > 0
