"""Search and scoring over any model that writes step by step: ids in, ids out, no text.

Options and hypotheses are plain records; what needs torch is imported when it is first asked for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from transduce.decoding.brackets import Brackets
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.options import DecodingOptions

if TYPE_CHECKING:
    from transduce.decoding.scoring import score
    from transduce.decoding.search import decode
    from transduce.decoding.steps import Stepper

__all__ = ["Brackets", "DecodingOptions", "Hypothesis", "Stepper", "decode", "score"]


def __getattr__(name: str) -> Any:
    from importlib import import_module

    homes = {"decode": "search", "score": "scoring", "Stepper": "steps"}
    if name not in homes:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{homes[name]}"), name)
