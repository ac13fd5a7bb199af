"""Length penalties: without one, short hypotheses win, because every token costs probability."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from transduce.decoding.options import DecodingOptions

if TYPE_CHECKING:
    from torch import Tensor

    Length = TypeVar("Length", float, Tensor)

__all__ = ["length_penalty"]


def length_penalty(length: Length, options: DecodingOptions) -> Length:
    """What log-probabilities of hypotheses of `length` tokens, end of sentence included, are divided by.

    gnmt (the paper; Wu et al., 2016): ((5 + |Y|) / 6)^α        power (most toolkits): |Y|^α
    """
    penalty: Length = 0.0 * length + 1.0
    if options.length_penalty == "gnmt":
        penalty = ((5 + length) / 6) ** options.alpha
    elif options.length_penalty == "power":
        penalty = (1.0 * length) ** options.alpha
    return penalty
