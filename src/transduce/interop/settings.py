"""What another library's config.json says, asked for by name and type."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from transduce.errors import BundleError, nearest

__all__ = ["ACTIVATIONS", "Settings"]

Choice = TypeVar("Choice")

ACTIVATIONS = {
    "relu": "relu",
    "gelu": "gelu",
    "gelu_python": "gelu",
    "gelu_new": "gelu_tanh",
    "gelu_pytorch_tanh": "gelu_tanh",
    "silu": "silu",
    "swish": "silu",
}
"""Their names of activations, and ours."""

MOST = 2**31
"""No size is larger."""


@dataclass(frozen=True)
class Settings:
    """A description of a model; what it leaves out has the default that is given where it is asked for."""

    values: Mapping[str, Any]
    path: Path

    def size(self, name: str, default: int | None = None) -> int:
        """A whole number, 0 or more."""
        value = self.values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST:
            raise self.wrong(name, "a whole number")
        return value

    def token(self, name: str, default: int | None = None) -> int | None:
        """The id of a special token; None where there is none."""
        value = self.values.get(name, default)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if value is not None and (isinstance(value, bool) or not isinstance(value, int) or not 0 <= value < MOST):
            raise self.wrong(name, "the id of a token")
        return value

    def number(self, name: str, default: float) -> float:
        """A number from 0 to 1: dropout, or what is added to a variance."""
        value = self.values.get(name)
        value = default if value is None else value
        if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 1:
            raise self.wrong(name, "a number from 0 to 1")
        return float(value)

    def flag(self, name: str, default: bool) -> bool:
        """True or false."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, bool):
            raise self.wrong(name, "true or false")
        return value

    def choice(self, name: str, choices: Mapping[str, Choice], default: str) -> Choice:
        """What one of some words stands for."""
        value = self.values.get(name)
        value = default if value is None else value
        if not isinstance(value, str) or value not in choices:
            raise BundleError(
                f"{name}={_shown(value)} has no counterpart here.",
                where=str(self.path),
                remedy=nearest(_shown(value), choices),
            )
        return choices[value]

    def must_be(self, name: str, value: Any) -> None:
        """Refuse a setting that has another value than the only one that can be imported."""
        found = self.values.get(name)
        if found is not None and found != value:
            raise BundleError(
                f"{name}={_shown(found)} has no counterpart here.", where=str(self.path), remedy=f"Only {value!r} has."
            )

    def wrong(self, name: str, wanted: str) -> BundleError:
        """The error about a value that is not of its type, or is not there."""
        found = _shown(self.values[name]) if name in self.values else "missing"
        return BundleError(f"{name} is {found}.", where=str(self.path), remedy=f"It must be {wanted}.")


def _shown(value: Any) -> str:
    """A value in a message: short, whatever a file holds."""
    return f"{value!r:.60}" if isinstance(value, (str, int, float, type(None))) else f"a {type(value).__name__}"
