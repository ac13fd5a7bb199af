"""What PyTorch saved before 1.6: pickles in a row and then the numbers, read without running anything.

The same names are allowed as in newer files (`transduce.interop.pickles`), and all that they get is made here: a
storage is a place in the file, a tensor a view of one that is found to lie inside it.
"""

from __future__ import annotations

import io
import math
import pickle
import pickletools
import struct
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

import torch
from torch import Tensor

from transduce.errors import BundleError

__all__ = ["is_old", "read_old_pickle"]

MAGIC = 0x1950A86A20F9469CFC6C
"""The number that such a file begins with, as a pickle."""
BEGINNING = pickle.dumps(MAGIC, protocol=2)
TYPES = {
    "FloatStorage": torch.float32,
    "DoubleStorage": torch.float64,
    "HalfStorage": torch.float16,
    "BFloat16Storage": torch.bfloat16,
    "LongStorage": torch.int64,
    "IntStorage": torch.int32,
    "ShortStorage": torch.int16,
    "CharStorage": torch.int8,
    "ByteStorage": torch.uint8,
    "BoolStorage": torch.bool,
}
MOST_INSTRUCTIONS = 64 * 2**20
NEVER = {"STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4", "NEWOBJ_EX"}


@dataclass(frozen=True)
class _Storage:
    """Numbers that stand somewhere in the file."""

    key: str
    type: torch.dtype
    count: int


@dataclass(frozen=True)
class _View:
    """A tensor to be: a shape over a storage."""

    storage: _Storage
    offset: int
    shape: tuple[int, ...]
    strides: tuple[int, ...]


def is_old(path: Path) -> bool:
    """Whether a file begins as those of PyTorch before 1.6 do."""
    with path.open("rb") as file:
        return file.read(len(BEGINNING)) == BEGINNING


def read_old_pickle(path: Path, allowed: Mapping[str, Any] | None = None) -> Any:
    """What such a file holds, if it asks for nothing but tensors and what is allowed besides, by "module name"."""
    size = path.stat().st_size
    try:
        with path.open("rb") as file:
            for _ in range(3):  # the number, the version of the format, and what machine it was
                _Unpickler(_pickle(file, path), {}, path).load()
            unpickler = _Unpickler(_pickle(file, path), _made(allowed or {}), path)
            found = unpickler.load()
            keys = _Unpickler(_pickle(file, path), {}, path).load()
            return _with_tensors(found, _tensors(file, keys, unpickler.storages, size, path), path)
    except BundleError:
        raise
    except Exception as error:  # an unpickler fails in as many ways as there are damages
        raise _refused(path, "the weights are damaged.") from error


def _pickle(file: BinaryIO, path: Path) -> bytes:
    """The next pickle of a file; its instructions are read, not run."""
    start = file.tell()
    for instructions, (opcode, argument, _) in enumerate(pickletools.genops(file)):
        if opcode.name in NEVER or ("PUT" in opcode.name and isinstance(argument, int) and argument > instructions):
            raise _refused(path, "its pickle does what PyTorch's never do.")
        if file.tell() - start > MOST_INSTRUCTIONS:
            raise _refused(path, "its pickle is larger than any of PyTorch's.")
    end = file.tell()
    file.seek(start)
    return file.read(end - start)


class _Unpickler(pickle.Unpickler):
    """Makes plain values and what is in a table; whatever else a pickle names is refused."""

    def __init__(self, contents: bytes, made: Mapping[str, Any], path: Path) -> None:
        super().__init__(io.BytesIO(contents), encoding="utf-8")
        self._made, self._path = made, path
        self.storages: dict[str, _Storage] = {}
        """What it has named so far, by key."""

    def find_class(self, module: str, name: str) -> Any:
        """What a name stands for."""
        if f"{module} {name}" not in self._made:
            raise _refused(self._path, f"it asks for {module}.{name}, which is no part of a tensor.")
        return self._made[f"{module} {name}"]

    def persistent_load(self, saved: Any) -> _Storage:
        """A storage, by what the file says of it."""
        kind, type_, key, _, count, view = saved
        sound = kind == "storage" and isinstance(type_, torch.dtype) and isinstance(key, str) and view is None
        if not sound or type(count) is not int or count < 0:
            raise _refused(self._path, "the weights are damaged.")
        return self.storages.setdefault(key, _Storage(key, type_, count))


def _made(allowed: Mapping[str, Any]) -> dict[str, Any]:
    def rebuilt(storage: _Storage, offset: int, shape: Sequence[int], strides: Sequence[int], *_: Any) -> _View:
        return _View(storage, offset, tuple(shape), tuple(strides))

    def parameter(view: _View, *_: Any) -> _View:
        return view

    others = {name: each[0] if isinstance(each, tuple) else each for name, each in allowed.items()}
    return {
        **others,
        "collections OrderedDict": OrderedDict,
        "torch._utils _rebuild_tensor": rebuilt,
        "torch._utils _rebuild_tensor_v2": rebuilt,
        "torch._utils _rebuild_parameter": parameter,
        **{f"torch {name}": type_ for name, type_ in TYPES.items()},
    }


def _tensors(file: BinaryIO, keys: Any, storages: Mapping[str, _Storage], size: int, path: Path) -> dict[str, Tensor]:
    """The storages behind the pickles, each as a row of numbers, once it is found to be there."""
    rows: dict[str, Tensor] = {}
    for key in keys:
        (count,) = struct.unpack("<q", file.read(8))
        storage = storages[key]
        if count != storage.count or file.tell() + count * storage.type.itemsize > size:
            raise _refused(path, "the weights are damaged.")
        numbers = file.read(count * storage.type.itemsize)
        rows[key] = torch.frombuffer(bytearray(numbers), dtype=storage.type) if count else torch.empty(0)
    return rows


def _with_tensors(found: Any, rows: Mapping[str, Tensor], path: Path, depth: int = 0) -> Any:
    """Nested values with tensors in the places of views."""
    if isinstance(found, _View):
        return _tensor(found, rows, path)
    if depth > 50:
        raise _refused(path, "it is nested too deeply.")
    if isinstance(found, dict):
        return {name: _with_tensors(value, rows, path, depth + 1) for name, value in found.items()}
    if isinstance(found, list | tuple):
        return [_with_tensors(value, rows, path, depth + 1) for value in found]
    return found


def _tensor(view: _View, rows: Mapping[str, Tensor], path: Path) -> Tensor:
    numbers = [view.offset, *view.shape, *view.strides]
    if any(type(number) is not int or number < 0 for number in numbers) or len(view.shape) != len(view.strides):
        raise _refused(path, "the weights are damaged.")
    reach = sum((length - 1) * stride for length, stride in zip(view.shape, view.strides, strict=True) if length)
    count = math.prod(view.shape)
    if count and (view.offset + reach >= view.storage.count or count > view.storage.count):
        raise _refused(path, f"a tensor of shape {list(view.shape)} does not fit into the file.")
    return rows[view.storage.key].as_strided(view.shape, view.strides, view.offset)


def _refused(path: Path, what: str) -> BundleError:
    return BundleError(what, where=str(path), remedy="Use another copy.")
