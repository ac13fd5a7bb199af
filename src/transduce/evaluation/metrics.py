"""BLEU, chrF and TER of a corpus, as sacreBLEU computes them, each with its interval and signature."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from transduce.errors import ConfigError
from transduce.evaluation.scorers import NAMES, check_lines, check_metrics, check_resampling, scorer, seeded

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

__all__ = ["Evaluation", "Score", "evaluate", "exact_match", "quick_bleu", "quick_chrf"]


@dataclass(frozen=True)
class Score:
    """One metric over one corpus."""

    name: str
    """"BLEU", "chrF" (chrF2, six characters) or "TER"."""
    value: float
    """From 0 to 100; for TER lower is better, and it can exceed 100."""
    low: float | None
    """Start of the 95 % interval, sacreBLEU's mean of bootstrap samples ± half-width; None if not computed."""
    high: float | None
    """End of the interval."""
    signature: str
    """sacreBLEU's signature: scores are comparable where it is the same."""


@dataclass(frozen=True)
class Evaluation:
    """The scores of one system's translations."""

    sentences: int
    scores: dict[str, Score]
    """By metric: "bleu", "chrf", "ter", in the order asked for."""

    @property
    def bleu(self) -> float:
        """Corpus BLEU."""
        return self._value("bleu")

    @property
    def chrf(self) -> float:
        """Corpus chrF2."""
        return self._value("chrf")

    @property
    def ter(self) -> float:
        """Corpus TER; lower is better."""
        return self._value("ter")

    def as_dict(self) -> dict[str, Any]:
        """For JSON: `sentences`, a value per metric, and `signature` and `interval` ([low, high]) by metric."""
        intervals = {metric: [score.low, score.high] for metric, score in self.scores.items() if score.low is not None}
        return {
            "sentences": self.sentences,
            **{metric: score.value for metric, score in self.scores.items()},
            "signature": {metric: score.signature for metric, score in self.scores.items()},
            **({"interval": intervals} if intervals else {}),
        }

    def _value(self, metric: str) -> float:
        if metric not in self.scores:
            raise ConfigError(f"{NAMES[metric]} was not computed.", remedy=f"Add {metric!r} to metrics.")
        return self.scores[metric].value


def evaluate(
    hypotheses: Sequence[str],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = ("bleu", "chrf", "ter"),
    intervals: bool = True,
    samples: int = 1000,
    seed: int = 12345,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Evaluation:
    """Corpus scores of plain, detokenized text, equal to those of the `sacrebleu` command.

    Args:
        hypotheses: The translations, one sentence each.
        references: The right answers, in the same order.
        metrics: Which of "bleu", "chrf" and "ter".
        intervals: Add 95 % intervals by bootstrap resampling.
        samples: Bootstrap samples of an interval.
        seed: Of the bootstrap; the same seed gives the same interval.
        tokenize: How BLEU finds words: "13a", or "zh", "char", "intl" and others of sacreBLEU's.
        lowercase: Ignore case in BLEU and chrF. TER always does.
    """
    check_lines(hypotheses=hypotheses, references=references)
    check_metrics(metrics)
    check_resampling(samples, seed)
    with seeded(seed):
        scores = {
            metric: _score(metric, hypotheses, references, samples if intervals else 0, tokenize, lowercase)
            for metric in metrics
        }
    return Evaluation(len(hypotheses), scores)


def quick_bleu(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus BLEU alone, for validation during training."""
    check_lines(hypotheses=hypotheses, references=references)
    # force: a warning that the text looks tokenized would come back at every validation.
    return float(scorer("bleu", force=True).corpus_score(hypotheses, [references]).score)


def quick_chrf(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """Corpus chrF2 alone, for validation during training."""
    check_lines(hypotheses=hypotheses, references=references)
    return float(scorer("chrf").corpus_score(hypotheses, [references]).score)


def exact_match(hypotheses: Sequence[str], references: Sequence[str]) -> float:
    """The share, from 0 to 1, of sentences that equal their reference to the letter."""
    check_lines(hypotheses=hypotheses, references=references)
    same = sum(hypothesis == reference for hypothesis, reference in zip(hypotheses, references, strict=True))
    return same / len(references)


def _score(
    metric: str, hypotheses: Sequence[str], references: Sequence[str], samples: int, tokenize: str, lowercase: bool
) -> Score:
    judge = scorer(metric, tokenize=tokenize, lowercase=lowercase)
    _make_samples_plain(judge)
    result = judge.corpus_score(hypotheses, [references], n_bootstrap=samples)
    low, high = None, None
    if samples:
        # sacreBLEU offers these two only inside formatted text, where they are rounded and, for a mean of 0, absent.
        low, high = float(result._mean - result._ci), float(result._mean + result._ci)
    return Score(NAMES[metric], float(result.score), low, high, str(judge.get_signature()))


def _make_samples_plain(judge: Metric) -> None:
    """A sample's score is a single-precision number, but a plain 0.0 where nothing matches: no mean takes both."""
    compute = judge._compute_score_from_stats

    def plain(stats: list[Any]) -> Any:
        result = compute(stats)
        result.score = float(result.score)
        return result

    judge._compute_score_from_stats = plain  # type: ignore[method-assign]
