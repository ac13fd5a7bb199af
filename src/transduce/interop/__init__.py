"""Doors to other people's tools: models out, and in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.interop.huggingface import load_huggingface

__all__ = ["load_huggingface"]


def __getattr__(name: str) -> Any:
    if name == "load_huggingface":  # which needs torch; other doors do not
        from transduce.interop.huggingface import load_huggingface

        return load_huggingface
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
