"""What PyTorch saves as a pickle, read without trusting it: tensors and plain values, never a program.

A pickle names what it wants called. Before anything is loaded the names are compared with a short list, and the archive
around it must be what PyTorch writes: nothing compressed, nothing overlapping, so that it is never more than the file.
"""

from __future__ import annotations

import io
import pickletools
import zipfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from transduce.errors import BundleError
from transduce.interop.old_pickles import is_old, read_old_pickle

__all__ = ["TENSORS_ONLY", "read_pickle", "read_tensors"]

STORAGES = ("Float", "Double", "Half", "BFloat16", "Long", "Int", "Short", "Char", "Byte", "Bool")
TENSORS_ONLY = frozenset(
    {"collections OrderedDict", "torch._utils _rebuild_tensor_v2", "torch._utils _rebuild_parameter"}
    | {f"torch {kind}Storage" for kind in STORAGES}
)
"""What a pickle of tensors asks for, as pickles write it: module and name."""
MOST_INSTRUCTIONS = 64 * 2**20
"""Bytes of the pickle itself, without the numbers of the tensors."""
NEVER = {"STACK_GLOBAL", "INST", "OBJ", "EXT1", "EXT2", "EXT4", "NEWOBJ_EX"}
"""Instructions that name something to call in ways that PyTorch does not write."""


def read_tensors(path: Path) -> dict[str, Tensor]:
    """The tensors of a pickled state dict, by name; they lie in the file until they are used."""
    found = read_pickle(path)
    if not isinstance(found, dict):
        raise _refused(path, "it is not a set of names and tensors.")
    for name, value in found.items():
        if not isinstance(name, str) or not isinstance(value, Tensor):
            raise _refused(path, f"{name!r} is not a tensor.")
    return dict(found)


def read_pickle(path: Path, allowed: Mapping[str, Any] | None = None) -> Any:
    """What a file of `torch.save` holds, if it asks for nothing but tensors and what is allowed besides.

    `allowed` has what else it may ask for, such as {"argparse Namespace": argparse.Namespace}: these are made, so they
    must be harmless whatever they are made with.
    """
    if is_old(path):
        return read_old_pickle(path, allowed)
    size, instructions = _opened(path)
    permitted = TENSORS_ONLY | set(allowed or ())
    for name in _wanted(path, instructions):
        if name not in permitted:
            raise _refused(path, f"it asks for {name.replace(' ', '.')}, which is no part of a tensor.")
    try:
        with torch.serialization.safe_globals(list((allowed or {}).values())):
            # On the device without memory first: nothing is allocated, however large it says its tensors are.
            _check_sizes(path, torch.load(path, map_location="meta", weights_only=True), size)
            return torch.load(path, map_location="cpu", weights_only=True, mmap=True)
    except BundleError:
        raise
    except Exception as error:  # an unpickler fails in as many ways as there are damages
        raise _refused(path, "the weights are damaged.") from error


def _opened(path: Path) -> tuple[int, bytes]:
    """The file's size and the instructions of its pickle; refuses what is not such an archive as PyTorch writes."""
    try:
        size = path.stat().st_size
        with zipfile.ZipFile(path) as archive:
            entries = archive.infolist()
            if any(entry.compress_type != zipfile.ZIP_STORED or entry.flag_bits & 1 for entry in entries):
                raise _refused(path, "it holds something compressed, which PyTorch never writes.")
            if sum(entry.file_size for entry in entries) > size:
                raise _refused(path, "it says that it holds more than the file has.")
            pickles = [entry for entry in entries if entry.filename.endswith("/data.pkl")]
            if len(pickles) != 1 or pickles[0].file_size > MOST_INSTRUCTIONS:
                raise _refused(path, "it is not what PyTorch writes.")
            return size, archive.read(pickles[0])
    except (zipfile.BadZipFile, NotImplementedError, EOFError, ValueError, OSError) as error:
        if isinstance(error, BundleError):
            raise
        raise _refused(path, "it is damaged, or is not what PyTorch writes.") from error


def _wanted(path: Path, instructions: bytes) -> Iterator[str]:
    """What a pickle names, as "module name"; read, not run."""
    try:
        for opcode, argument, _ in pickletools.genops(io.BytesIO(instructions)):
            if opcode.name in NEVER:
                raise _refused(path, "it names what it wants called in a way that PyTorch never writes.")
            if opcode.name == "GLOBAL":
                yield str(argument)
    except BundleError:
        raise
    except Exception as error:
        raise _refused(path, "the weights are damaged.") from error


def _check_sizes(path: Path, found: Any, size: int) -> None:
    """Refuse tensors that would be larger than their file: shapes and strides can claim anything."""
    if isinstance(found, Tensor):
        if found.numel() * found.element_size() > size:
            raise _refused(path, f"a tensor of shape {list(found.shape)} does not fit into the file.")
    elif isinstance(found, dict):
        for value in found.values():
            _check_sizes(path, value, size)
    elif isinstance(found, list | tuple):
        for value in found:
            _check_sizes(path, value, size)


def _refused(path: Path, what: str) -> BundleError:
    return BundleError(what, where=str(path), remedy="Use another copy, best as safetensors.")
