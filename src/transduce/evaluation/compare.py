"""Is one system better than another, or is it chance? Paired bootstrap resampling (Koehn, 2004), by sacreBLEU."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from transduce.errors import InputError
from transduce.evaluation.scorers import (
    LOWER_IS_BETTER,
    NAMES,
    check_lines,
    check_metrics,
    check_resampling,
    scorer,
    seeded,
)

if TYPE_CHECKING:
    from sacrebleu.significance import Result

__all__ = ["Comparison", "SystemScore", "compare"]

SIGNIFICANT = 0.05


@dataclass(frozen=True)
class SystemScore:
    """One metric of one system, beside the baseline."""

    name: str
    """"BLEU", "chrF" or "TER"."""
    value: float
    """Of the corpus as it is."""
    mean: float
    """Of the bootstrap samples."""
    low: float
    """Start of the 95 % interval around the mean."""
    high: float
    """End of the interval."""
    p_value: float | None
    """How probable so large a difference to the baseline is by chance; None for the baseline."""
    better: bool | None
    """Better than the baseline with p < 0.05; None for the baseline. False is no proof of being equal."""
    worse: bool | None
    """Worse than the baseline with p < 0.05; None for the baseline."""
    signature: str
    """sacreBLEU's signature, with the number of samples and the seed."""


@dataclass(frozen=True)
class Comparison:
    """All systems on the same sentences."""

    sentences: int
    baseline: str
    """The system that the others are compared with."""
    systems: dict[str, dict[str, SystemScore]]
    """By system, then by metric; the baseline first."""

    def as_dict(self) -> dict[str, Any]:
        """For JSON, with the fields' names as keys."""
        return asdict(self)


def compare(
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    *,
    metrics: Sequence[str] = ("bleu", "chrf"),
    samples: int = 1000,
    seed: int = 12345,
    tokenize: str = "13a",
    lowercase: bool = False,
) -> Comparison:
    """Each system against the first one, which is the baseline.

    Args:
        systems: By name, the translations of the same sentences.
        references: The right answers, in the same order.
        metrics: Which of "bleu", "chrf" and "ter".
        samples: Bootstrap samples. The smallest p-value that can be found is 1 / (samples + 1).
        seed: Of the bootstrap; the same seed gives the same result.
        tokenize: As in `evaluate`.
        lowercase: As in `evaluate`.
    """
    if len(systems) < 2:
        raise InputError(
            f"A comparison needs two systems or more, this has {len(systems)}.",
            remedy="Give a baseline and a system to compare with it; for one system alone, use evaluate.",
        )
    for name, hypotheses in systems.items():
        check_lines(f"system {name!r}", hypotheses=hypotheses, references=references)
    check_metrics(metrics)
    check_resampling(samples, seed)

    scores: dict[str, dict[str, SystemScore]] = {name: {} for name in systems}
    for metric in dict.fromkeys(metrics):
        signature, results = _paired_bootstrap(metric, systems, references, samples, seed, tokenize, lowercase)
        for name, result in zip(systems, results, strict=True):
            scores[name][metric] = _against(results[0], metric, result, signature)
    return Comparison(len(references), next(iter(systems)), scores)


def _paired_bootstrap(
    metric: str,
    systems: Mapping[str, Sequence[str]],
    references: Sequence[str],
    samples: int,
    seed: int,
    tokenize: str,
    lowercase: bool,
) -> tuple[str, list[Result]]:
    """One metric's signature, and its results in the order of `systems`. Every system sees the same resamples."""
    from sacrebleu.significance import PairedTest

    judge = scorer(metric, tokenize=tokenize, lowercase=lowercase, references=references)
    with seeded(seed):
        test = PairedTest(list(systems.items()), {metric: judge}, references=None, test_type="bs", n_samples=samples)
        found, table = test()
    # sacreBLEU files them under a name of its own (chrF2); there is only this one metric.
    ((name, signature),) = found.items()
    return str(signature), table[name]  # type: ignore[return-value]  # only the "System" column holds strings


def _against(baseline: Result, metric: str, result: Result, signature: str) -> SystemScore:
    gain = result.score - baseline.score
    if metric in LOWER_IS_BETTER:
        gain = -gain
    p_value = None if result.p_value is None else float(result.p_value)
    if p_value is not None and gain == 0:
        p_value = 1.0  # sacreBLEU finds the smallest p-value of all between a system and itself
    significant = p_value is not None and p_value < SIGNIFICANT
    assert result.mean is not None
    assert result.ci is not None
    return SystemScore(
        name=NAMES[metric],
        value=float(result.score),
        mean=float(result.mean),
        low=float(result.mean - result.ci),
        high=float(result.mean + result.ci),
        p_value=p_value,
        better=None if p_value is None else significant and gain > 0,
        worse=None if p_value is None else significant and gain < 0,
        signature=signature,
    )
