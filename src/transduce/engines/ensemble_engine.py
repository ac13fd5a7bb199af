"""The engine of several models that write one translation together."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.bundle import Bundle
from transduce.decoding.ensemble import Ensemble
from transduce.engines.stepper_engine import StepperEngine
from transduce.errors import BundleError

__all__ = ["EnsembleEngine"]


class EnsembleEngine(StepperEngine):
    """Runs models with PyTorch, all of them at every word."""

    calibrated = False

    def __init__(self, bundles: Sequence[Bundle]) -> None:
        first, *others = bundles
        for other in others:
            _check_alike(first, other)
        super().__init__(Ensemble([bundle.model() for bundle in bundles]))


def _check_alike(first: Bundle, other: Bundle) -> None:
    """Refuse a model that reads or writes other ids than the first: its word for an id would be another."""
    if first.config.target_languages != other.config.target_languages:
        raise BundleError(
            f"it does not know the same languages as {first.path}.",
            where=str(other.path),
            remedy="Give models of the same languages.",
        )
    mine, theirs = first.vocabularies(), other.vocabularies()
    for side in ("source", "target"):
        one, another = getattr(mine, side), getattr(theirs, side)
        if (one.model, one.letters) != (another.model, another.letters):
            raise BundleError(
                f"its {side} vocabulary is not that of {first.path}: together they cannot write a word.",
                where=str(other.path),
                remedy="Train both on the same corpus with the same tokenizer settings; --seed may differ.",
            )
