"""Other people's weights, read so that a file can lie and nothing comes of it.

Names, shapes and types are known before a tensor is read; a tensor is read only when it is asked for, and refused by
name if it holds NaN or infinity. Nothing is unpickled unless that is asked for, and then only tensors
(`transduce.interop.pickles`).
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from transduce.errors import BundleError
from transduce.interop.pickles import read_tensors

__all__ = ["Weights", "read_json"]

SAFETENSORS, PICKLE = "model.safetensors", "pytorch_model.bin"
MOST_JSON = 64 * 2**20
"""Bytes of a description; a tokenizer's are the largest, with some megabytes."""
TYPES = {"F64", "F32", "F16", "BF16"}
"""Numbers that weights can be made of, by their names in safetensors."""
PICKLED_TYPES = {torch.float64: "F64", torch.float32: "F32", torch.float16: "F16", torch.bfloat16: "BF16"}


def read_json(path: Path) -> dict[str, Any]:
    """A file of names and values, or an error that says what is wrong with it."""
    try:
        if path.stat().st_size > MOST_JSON:
            raise BundleError(
                f"it has more than {MOST_JSON >> 20} MB.", where=str(path), remedy="Is it the right file?"
            )
        found = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise BundleError("there is no such file.", where=str(path), remedy="Give a model's directory.") from error
    except RecursionError as error:
        raise BundleError("it is nested too deeply.", where=str(path), remedy="Copy it again.") from error
    except (OSError, ValueError) as error:
        raise BundleError("it is not readable as JSON.", where=str(path), remedy="Copy it again.") from error
    if not isinstance(found, dict):
        raise BundleError("it is not a set of names and values.", where=str(path), remedy="Copy it again.")
    return found


@dataclass(frozen=True)
class Header:
    """What a file says of one tensor."""

    shape: tuple[int, ...]
    type: str
    """As safetensors names it, such as F32."""
    file: Path
    read: Callable[[], Tensor]


class Weights(Mapping[str, Header]):
    """The tensors of a model directory, of one file or of several: by name what their files say of them."""

    def __init__(self, headers: Mapping[str, Header], directory: Path) -> None:
        self._headers = dict(headers)
        self.directory = directory

    def __getitem__(self, name: str) -> Header:
        return self._headers[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._headers)

    def __len__(self) -> int:
        return len(self._headers)

    @classmethod
    def open(cls, directory: Path, allow_pickle: bool = False) -> Weights:
        """Find a directory's weights and read what they say of themselves; pickled ones only if that is allowed."""
        for name in (SAFETENSORS, PICKLE):
            pickled = name == PICKLE
            whole, index = directory / name, directory / f"{name}.index.json"
            if not whole.is_file() and not index.is_file():
                continue
            if pickled and not allow_pickle:
                raise BundleError(
                    f"the weights are pickled ({PICKLE}), and a pickle can hold a program.",
                    where=str(directory),
                    remedy="Convert them to safetensors; or if you trust where they come from, allow pickles: they "
                    "are then read by a loader that knows tensors only.",
                )
            files = [whole] if whole.is_file() else _parts(index)
            headers: dict[str, Header] = {}
            for path in files:
                for tensor, header in (_pickled(path) if pickled else _safetensors(path)).items():
                    if tensor in headers:
                        raise BundleError(
                            f"{tensor!r} stands in {headers[tensor].file.name} too.",
                            where=str(path),
                            remedy="Copy the model again.",
                        )
                    headers[tensor] = header
            return cls(headers, directory)
        raise BundleError(
            f"there are no weights here: {SAFETENSORS} is missing.",
            where=str(directory),
            remedy="Copy the model again, all files of it.",
        )

    def renamed(self, rename: Callable[[str], str]) -> Weights:
        """The same tensors by other names."""
        renamed: dict[str, Header] = {}
        for name, header in self._headers.items():
            if rename(name) in renamed:
                raise BundleError(f"{rename(name)!r} is there twice, as {name!r} too.", where=str(header.file))
            renamed[rename(name)] = header
        return Weights(renamed, self.directory)

    def tensor(self, name: str) -> Tensor:
        """A tensor in float32, found to be numbers."""
        header = self[name]
        if header.type not in TYPES:
            raise BundleError(
                f"{name!r} is of type {header.type}, which weights cannot be.",
                where=str(header.file),
                remedy=f"Save the model with weights of one of these: {', '.join(sorted(TYPES))}.",
            )
        with _damage(header.file):
            found = header.read().to(torch.float32)
        if not bool(torch.isfinite(found).all()):
            raise BundleError(
                f"{name!r} holds NaN or infinity.",
                where=str(header.file),
                remedy="Its training diverged or the file is damaged; use another copy.",
            )
        return found


@contextmanager
def _damage(path: Path) -> Iterator[None]:
    """What the library says of a file that does not hold what it promises, as one of our errors."""
    try:
        yield
    except (SafetensorError, OSError, ValueError, OverflowError, MemoryError, RuntimeError) as error:
        if isinstance(error, BundleError):
            raise
        raise BundleError("the weights are damaged.", where=str(path), remedy="Copy them again.") from error


def _safetensors(path: Path) -> dict[str, Header]:
    # The library maps the file and checks, before anything else, that the header's offsets and sizes fill it exactly.
    with _damage(path):
        file: Any = safe_open(path, framework="pt")
        file.__enter__()  # open as long as something may be read of it
        headers = {}
        for name in file.keys():  # noqa: SIM118
            part = file.get_slice(name)
            read = _reader(file, name)
            headers[name] = Header(tuple(part.get_shape()), str(part.get_dtype()), path, read)
    return headers


def _reader(file: Any, name: str) -> Callable[[], Tensor]:
    return lambda: file.get_tensor(name)


def _pickled(path: Path) -> dict[str, Header]:
    headers = {}
    for name, tensor in read_tensors(path).items():
        kind = PICKLED_TYPES.get(tensor.dtype, str(tensor.dtype))
        headers[name] = Header(tuple(tensor.shape), kind, path, tensor.clone)
    return headers


def _parts(index: Path) -> list[Path]:
    """The files that an index names, each a neighbour of it."""
    names = read_json(index).get("weight_map")
    if not isinstance(names, dict) or not all(isinstance(each, str) for each in names.values()):
        raise BundleError("its 'weight_map' does not say which file a tensor is in.", where=str(index))
    ending = index.name.removesuffix(".index.json").rpartition(".")[2]
    found = []
    for name in sorted(set(names.values())):
        if Path(name).name != name or set(name) & set("/\\:\0") or not name.endswith(f".{ending}"):
            raise BundleError(
                f"it names {name!r}, which is no file beside it.",
                where=str(index),
                remedy="Such an index reaches for other people's files; do not use it.",
            )
        if not (index.parent / name).is_file():
            raise BundleError(f"the model is incomplete: {name} is missing.", where=str(index.parent))
        found.append(index.parent / name)
    return found
