"""Everything that can go wrong through a user's doing, as one small tree.

TransduceError
├── ConfigError      a setting has a value that cannot work
├── InputError       the ids or texts handed over cannot be processed
├── BundleError      a model directory is missing, damaged or not ours
├── StorageError     a disk is full, or a file cannot be read or written
└── ModelError       the model itself gives something unusable, such as NaN
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable

__all__ = ["BundleError", "ConfigError", "InputError", "ModelError", "StorageError", "TransduceError", "nearest"]


class TransduceError(Exception):
    """Base of all errors a user can cause: what is wrong, where, and what to do about it.

    The message is complete without a traceback; the command line prints it as it is and exits with 2.
    """

    def __init__(self, what: str, *, where: str | None = None, remedy: str | None = None) -> None:
        self.what = what
        self.where = where
        self.remedy = remedy
        place = f"{where}: " if where else ""
        advice = f" {remedy}" if remedy else ""
        super().__init__(f"{place}{what}{advice}")


class ConfigError(TransduceError, ValueError):
    """A setting (of a model, of decoding, of a recipe) has a value that cannot work."""


class InputError(TransduceError, ValueError):
    """Ids or texts handed to a model or to decoding cannot be processed."""


class BundleError(TransduceError, ValueError):
    """A model directory is missing, damaged, incomplete, or from a newer version."""


class StorageError(TransduceError):
    """The system cannot read or write a file: the disk is full, or not ours to use."""


class ModelError(TransduceError, RuntimeError):
    """The model gives something unusable; its weights are damaged or its training diverged."""


def nearest(word: str, choices: Iterable[str]) -> str:
    """The advice that ends a message about a wrong name: the nearest valid one, and the list of all."""
    names = sorted(choices)
    close = difflib.get_close_matches(word, names, n=1, cutoff=0.5)
    guess = f"Did you mean {close[0]!r}? " if close else ""
    return f"{guess}Valid: {', '.join(names)}."
