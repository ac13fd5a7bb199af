"""Learning rates as pure functions: step in, rate out."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from transduce.errors import ConfigError

if TYPE_CHECKING:
    from transduce.training.recipe import Recipe

__all__ = ["at_the_end", "cooled", "cosine", "inverse_sqrt", "learning_rate", "noam"]


def learning_rate(recipe: Recipe, step: int, d_model: int) -> float:
    """The rate of a step, from 1, by the recipe's schedule."""
    settings = recipe.training
    if settings.schedule == "noam":
        return settings.rate * noam(step, d_model, settings.warmup)
    if settings.schedule == "inverse_sqrt":
        return inverse_sqrt(step, settings.rate, settings.warmup)
    assert recipe.budget.steps is not None, "the recipe was checked"
    return cosine(step, settings.rate, settings.warmup, total=recipe.budget.steps)


def noam(step: int, d_model: int = 512, warmup: int = 4000) -> float:
    """Equation 3: d_model^-0.5 · min(step^-0.5, step · warmup^-1.5), for steps from 1.

    Rises linearly for `warmup` steps, then falls with the inverse square root of the step.
    """
    if step < 1 or d_model < 1 or warmup < 1:
        raise ConfigError(
            f"noam(step={step}, d_model={d_model}, warmup={warmup}) is undefined.",
            remedy="All three count from 1; the first update is step 1.",
        )
    rate: float = d_model**-0.5 * min(step**-0.5, step * warmup**-1.5)
    return rate


def inverse_sqrt(step: int, peak: float, warmup: int) -> float:
    """Noam's shape with the peak set by hand: peak · min(step / warmup, √(warmup / step))."""
    return peak * min(step / warmup, math.sqrt(warmup / step))


def cosine(step: int, peak: float, warmup: int, total: int, floor: float = 0.0) -> float:
    """Linear warm-up to `peak`, then half a cosine down to `floor` at `total` steps, and `floor` from there on."""
    if step < warmup:
        return peak * step / warmup
    progress = min(1.0, (step - warmup) / max(1, total - warmup))
    return floor + (peak - floor) * (1 + math.cos(math.pi * progress)) / 2


def at_the_end(spent: float, share: float) -> bool:
    """Whether so much of the budget is spent that only `share` of it is left."""
    return spent >= 1 - share


def cooled(spent: float, share: float) -> float:
    """The factor on a rate when `spent` of the budget is: 1, then linearly down to 0 over the last `share` of it."""
    return 1.0 if not share else max(0.0, min(1.0, (1 - spent) / share))
