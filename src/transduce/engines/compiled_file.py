"""What `model.bin`, the file of a compiled model, says of itself: read so that it can lie and nothing comes of it.

CTranslate2 allocates what a file asks for. So names, shapes and places are read first, and nothing else.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, NamedTuple

from transduce.errors import BundleError

__all__ = ["MODEL", "CompiledFile", "CompiledTensor"]

MODEL = "model.bin"
TYPES = ("float32", "int8", "int16", "int32", "float16", "bfloat16")
WIDTHS = {"float32": 4, "int8": 1, "int16": 2, "int32": 4, "float16": 2, "bfloat16": 2}
KNOWN_VERSIONS = range(5, 7)
"""Of the file's form; those of CTranslate2 since 2020."""
MOST_TENSORS, MOST_DIMENSIONS = 100_000, 8
WEIGHTS = ("weight", "bias", "gamma", "beta")
"""How names of what was learned end; the rest are settings, scales and positions."""


class CompiledTensor(NamedTuple):
    """What is said of one tensor, and where it is."""

    shape: tuple[int, ...]
    type: str
    start: int
    size: int


@dataclass(frozen=True)
class CompiledFile:
    """A file whose parts have been found to be all there."""

    path: Path
    kind: str
    """Such as TransformerSpec."""
    tensors: Mapping[str, CompiledTensor]
    """By name; those that are there twice under each of their names."""

    @classmethod
    def read(cls, path: Path) -> CompiledFile:
        """Read the description; weights stay where they are."""
        try:
            size = path.stat().st_size
            with path.open("rb") as file:
                return cls(path, *_read(file, size))
        except FileNotFoundError as error:
            raise BundleError("there is no such file.", where=str(path), remedy="Copy the model again.") from error
        except (OSError, ValueError, struct.error) as error:
            said = str(error) if isinstance(error, ValueError) and not isinstance(error, UnicodeError) else ""
            raise BundleError(
                f"the compiled model is damaged{f': {said}' if said else ''}.",
                where=str(path),
                remedy="Copy it again.",
            ) from error

    @property
    def parameters(self) -> int:
        """How many numbers were learned."""
        places = {tensor for name, tensor in self.tensors.items() if name.rpartition("/")[2] in WEIGHTS}
        return sum(math.prod(tensor.shape) for tensor in places)

    def check_numbers(self) -> None:
        """Refuse weights that are no numbers."""
        import numpy as np

        with self.path.open("rb") as file:
            for name, tensor in self.tensors.items():
                if tensor.type not in ("float32", "float16"):
                    continue
                file.seek(tensor.start)
                values: Any = np.frombuffer(file.read(tensor.size), tensor.type)
                if not np.isfinite(values).all():
                    raise BundleError(
                        f"the weights {name!r} hold NaN or infinity.", where=str(self.path), remedy="Use another copy."
                    )


def _read(file: IO[bytes], size: int) -> tuple[str, dict[str, CompiledTensor]]:
    version = _number(file, "I")
    if version not in KNOWN_VERSIONS:
        raise ValueError(f"its form is version {version}, which is not known here")
    kind, _revision, count = _text(file), _number(file, "I"), _number(file, "I")
    if count > MOST_TENSORS:
        raise ValueError(f"it speaks of {count:,} tensors")
    tensors: dict[str, CompiledTensor] = {}
    for _ in range(count):
        name, dimensions = _text(file), _number(file, "B")
        if dimensions > MOST_DIMENSIONS:
            raise ValueError(f"{name!r} has {dimensions} dimensions")
        shape = tuple(_number(file, "I") for _ in range(dimensions))
        number, length = _number(file, "B"), _number(file, "I")
        if number >= len(TYPES):
            raise ValueError(f"{name!r} is of a type that is not known")
        start = file.tell()
        # Lengths have 32 bits there: of what is larger, they are only the end.
        expected = math.prod(shape) * WIDTHS[TYPES[number]]
        if expected % 2**32 != length or start + expected > size:
            raise ValueError(f"{name!r} of shape {list(shape)} is not all there")
        tensors[name] = CompiledTensor(shape, TYPES[number], start, expected)
        file.seek(start + expected)
    for _ in range(min(_number(file, "I"), MOST_TENSORS)):
        alias, name = _text(file), _text(file)
        if name not in tensors:
            raise ValueError(f"{alias!r} is to be {name!r}, which is not there")
        tensors[alias] = tensors[name]
    return kind, tensors


def _number(file: IO[bytes], form: str) -> int:
    found: int = struct.unpack(f"<{form}", file.read(struct.calcsize(f"<{form}")))[0]
    return found


def _text(file: IO[bytes]) -> str:
    length = _number(file, "H")
    contents = file.read(length)
    if len(contents) != length:
        raise ValueError("it ends in a name")
    return contents.removesuffix(b"\0").decode()
