"""Slots: symbols that stand in a sentence for what must come through as it is, such as a name, a number or an address.

A model that has learned to carry them over (`data.variants` of a recipe) writes the symbol where the thing belongs.
"""

from __future__ import annotations

__all__ = ["SLOT_SYMBOLS"]

SLOT_SYMBOLS = tuple(f"⟦{number}⟧" for number in range(1, 9))
"""One piece of the vocabulary each."""
