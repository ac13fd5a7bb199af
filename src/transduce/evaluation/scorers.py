"""sacreBLEU behind one door: which metrics there are, how each is set up, and chance made repeatable.

sacreBLEU is imported inside the functions: nothing that only names this package should wait for it.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from transduce.errors import ConfigError, InputError, nearest

if TYPE_CHECKING:
    from sacrebleu.metrics.base import Metric

__all__ = ["LOWER_IS_BETTER", "NAMES", "check_lines", "check_metrics", "check_resampling", "scorer", "seeded"]

NAMES = {"bleu": "BLEU", "chrf": "chrF", "ter": "TER"}
LOWER_IS_BETTER = frozenset({"ter"})

SEED_VARIABLE = "SACREBLEU_SEED"


def scorer(
    metric: str,
    *,
    tokenize: str = "13a",
    lowercase: bool = False,
    effective_order: bool = False,
    force: bool = False,
    references: Sequence[str] | None = None,
) -> Metric:
    """What sacreBLEU scores one metric with, at sacreBLEU's defaults for all that is not named here.

    `tokenize`, `effective_order` and `force` concern BLEU only. TER ignores case whatever `lowercase` says, as it does
    by default in sacreBLEU; its signature says so. `references` are prepared once, for several systems to be scored.
    """
    from sacrebleu import BLEU, CHRF, TER

    cached = None if references is None else [references]
    if metric == "chrf":
        return CHRF(lowercase=lowercase, references=cached)
    if metric == "ter":
        return TER(references=cached)
    if tokenize not in BLEU.TOKENIZERS:
        raise ConfigError(f"tokenize={tokenize!r} is unknown.", remedy=nearest(tokenize, BLEU.TOKENIZERS))
    try:
        return BLEU(
            lowercase=lowercase,
            force=force or tokenize == "none",  # who asks for that knows that the text is tokenised
            tokenize=tokenize,
            effective_order=effective_order,
            references=cached,
        )
    except (ImportError, RuntimeError, OSError) as error:  # some tokenizers need a package, or a model from the network
        reason = " ".join(str(error).split())
        raise ConfigError(
            f"tokenize={tokenize!r} cannot be set up: {reason}",
            remedy="Install what it needs, or use tokenize='char', which needs nothing.",
        ) from error


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Gives sacreBLEU its seed, which it reads from the environment, and leaves the environment as it was."""
    before = os.environ.get(SEED_VARIABLE)
    os.environ[SEED_VARIABLE] = str(seed)
    try:
        yield
    finally:
        if before is None:
            del os.environ[SEED_VARIABLE]
        else:
            os.environ[SEED_VARIABLE] = before


def check_metrics(metrics: Sequence[str]) -> None:
    """Every metric is one of `NAMES`, and there is at least one."""
    for metric in metrics:
        if metric not in NAMES:
            raise ConfigError(f"{metric!r} is not a metric.", remedy=nearest(metric, NAMES))
    if not metrics:
        raise ConfigError("No metric is asked for.", remedy=f"Name at least one of {', '.join(NAMES)}.")


def check_resampling(samples: int, seed: int) -> None:
    """Enough samples for an interval, and a seed that sacreBLEU takes for one."""
    if samples < 2:
        raise ConfigError(f"samples={samples} cannot work.", remedy="It must be 2 or more; 1000 is usual.")
    if seed < 1:  # sacreBLEU's paired test takes 0 for "no seed" and would give other numbers at every run
        raise ConfigError(f"seed={seed} cannot work.", remedy="It must be a whole number, 1 or more.")


def check_lines(where: str | None = None, **texts: Sequence[str]) -> None:
    """All `texts` (such as hypotheses=…, references=…) have the same number of sentences, and at least one."""
    for name, lines in texts.items():
        if isinstance(lines, str):  # it would be scored letter by letter
            raise InputError(f"{name} are one text, not a list of sentences.", where=where, remedy="Split it first.")
    counts = {name: len(lines) for name, lines in texts.items()}
    listed = ", ".join(f"{count} {name}" for name, count in counts.items())
    if len(set(counts.values())) > 1:
        raise InputError(
            f"The counts differ: {listed}.", where=where, remedy="Line n of each must belong to the same sentence."
        )
    if not all(counts.values()):
        raise InputError(
            f"There is nothing to score: {listed}.", where=where, remedy="Give at least one sentence of each."
        )
