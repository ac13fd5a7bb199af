"""Slots: symbols that stand for a part of a sentence that is not to be translated, such as an address."""

from __future__ import annotations

__all__ = ["SLOT_SYMBOLS"]

SLOT_SYMBOLS = tuple(f"⟦{number}⟧" for number in range(1, 9))
"""What a vocabulary that has slots never splits, and what its model has learned to copy."""
