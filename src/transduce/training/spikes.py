"""Loss spikes: a step whose gradient would throw the weights far off is better not taken."""

from __future__ import annotations

import math
from statistics import median

__all__ = ["SpikeGuard"]

RECENT = 100
"""Steps that are looked back on."""
ENOUGH = 50
"""Steps before anything is judged: at first norms fall fast, and are no measure."""
FACTOR = 10.0
"""How many times the usual norm a gradient must have."""
JUMP = math.log(2)
"""How far the loss must be above all recent ones: twice their perplexity."""
IN_A_ROW = 3
"""Skips after which a step is taken all the same: then the weights are off, and only steps bring them back."""


class SpikeGuard:
    """Tells a spike: a gradient far larger than usual, with a loss far above all recent ones.

    Skipped steps are looked back on like others, so that what happens again and again becomes usual.
    """

    def __init__(self) -> None:
        self.recent: list[tuple[float, float]] = []
        """Norm and loss of the last steps; belongs into the run's checkpoint, as does the next."""
        self.in_a_row = 0

    def is_spike(self, norm: float, loss: float) -> bool:
        """Whether a step with this gradient norm and loss should be skipped; it is remembered either way."""
        usual = median(norm for norm, _ in self.recent) if len(self.recent) >= ENOUGH else float("inf")
        jumped = norm > FACTOR * usual and loss > max(loss for _, loss in self.recent) + JUMP
        self.recent = [*self.recent, (norm, loss)][-RECENT:]
        self.in_a_row = self.in_a_row + 1 if jumped and self.in_a_row < IN_A_ROW else 0
        return self.in_a_row > 0
