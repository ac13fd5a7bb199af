"""What decoding returns."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Hypothesis"]


@dataclass(frozen=True)
class Hypothesis:
    """One translation, as ids."""

    tokens: list[int]
    """The ids written, the end of sentence last; without the id that starts the decoder."""
    score: float
    """What hypotheses are ranked by: the log-probability divided by the length penalty."""
    log_probability: float
    """The model's, of all tokens: the sum of the token scores."""
    token_scores: list[float]
    """The model's log-probability of each token, given the source and those before; empty if an engine has none."""
