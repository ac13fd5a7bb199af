"""Where a run is, how much of its budget is spent, and when that is all."""

from __future__ import annotations

import math
from dataclasses import dataclass

from transduce.training.recipe import Budget

__all__ = ["Progress"]


@dataclass
class Progress:
    """Where a run is."""

    step: int = 0
    epoch: int = 0
    batch: int = 0
    """Batches of the epoch that have been used."""
    seconds: float = 0.0
    best: float = -math.inf
    best_step: int = 0
    waiting: int = 0
    """Validations since the best one."""
    skips: int = 0
    """Unusable gradients in a row."""
    cooled_by: int = 0
    """The step at which a cooldown that has begun early ends; 0 if none has."""

    def spent(self, budget: Budget) -> float:
        """How much of a budget will be spent by this step: of steps, epochs or minutes, whichever ends first."""
        shares = [0.0]
        if self.cooled_by:
            shares.append((self.step - 1) / self.cooled_by)
        if budget.steps is not None:
            shares.append((self.step - 1) / budget.steps)
        if budget.epochs is not None:
            shares.append(self.epoch / budget.epochs)
        if budget.minutes is not None:
            shares.append(self.seconds / (60 * budget.minutes))
        return max(shares)

    def cool_early(self, budget: Budget, patience: int, cooldown: float) -> bool:
        """Whether a cooldown begins now because waiting for it is in vain: it keeps its share of what the run will be.

        A falling rate wins what a high one cannot, so `patience` does not end a run that has a cooldown before it.
        """
        if not (patience and self.waiting >= patience and self.spent(budget) < 1 - cooldown < 1):
            return False
        self.cooled_by, self.waiting = math.ceil(self.step / (1 - cooldown)), 0
        return True

    def reason_to_end(self, budget: Budget, patience: int) -> str | None:
        """Why the run is complete, in words; None if it is not. With `patience`, so many validations without gain."""
        if budget.steps is not None and self.step >= budget.steps:
            return f"{self.step:,} steps done"
        if budget.epochs is not None and self.epoch >= budget.epochs:
            return f"{self.epoch} epochs done"
        if budget.minutes is not None and self.seconds >= 60 * budget.minutes:
            return f"{budget.minutes:g} minutes are over"
        if self.cooled_by and self.step >= self.cooled_by:
            return "nothing got better, and the rate has fallen to zero"
        if patience and self.waiting >= patience:
            return f"no better score in {self.waiting} validations"
        return None
