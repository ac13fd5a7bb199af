"""Pictures and their labels: IDX files, as MNIST's are, or NumPy's .npy; both may be packed with gzip."""

from __future__ import annotations

import gzip
import io
import math
import zlib
from dataclasses import dataclass
from pathlib import Path
from tokenize import TokenError
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from transduce.errors import InputError

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Pictures", "pixels", "read_array", "read_images"]

BYTES = 8
"""The kind of number, unsigned bytes, that IDX files of pictures and labels hold."""
LARGEST = 1 << 32
"""Bytes that a file may unpack to: more is a mistake, or an attack."""
LARGEST_LABEL = 65_535
MOST_DIMENSIONS = 4


@dataclass(frozen=True)
class Pictures:
    """Pictures [N, height, width, channels] of bytes, and the number of each one's label."""

    images: npt.NDArray[np.uint8]
    labels: npt.NDArray[np.int64]

    def __len__(self) -> int:
        return len(self.labels)

    @classmethod
    def read(cls, images: Path, labels: Path) -> Pictures:
        """Read two files that belong together."""
        pictures, numbers = read_images(images), read_array(labels)
        if numbers.ndim != 1 or not np.issubdtype(numbers.dtype, np.integer):
            raise InputError("these are no labels: a label is one whole number a picture.", where=str(labels))
        if len(pictures) != len(numbers) or not len(numbers):
            raise InputError(
                f"{len(numbers):,} labels for {len(pictures):,} pictures.",
                where=str(labels),
                remedy="Give the labels of these pictures.",
            )
        if numbers.min() < 0:
            raise InputError(f"the label {numbers.min()} is negative.", where=str(labels), remedy="Count from 0.")
        if numbers.max() > LARGEST_LABEL:
            raise InputError(
                f"the label {numbers.max()} is too large: a model tells all labels below it apart as well.",
                where=str(labels),
                remedy=f"Number them from 0 without gaps; {LARGEST_LABEL} is the most.",
            )
        return cls(pictures, numbers.astype(np.int64))


def read_images(path: Path) -> npt.NDArray[np.uint8]:
    """Pictures [N, height, width, channels], grey ones with one channel."""
    images = read_array(path)
    if images.dtype != np.uint8 or images.ndim not in (3, 4):
        raise InputError(
            f"these are no pictures: {images.dtype} of shape {list(images.shape)}.",
            where=str(path),
            remedy="Give bytes [pictures, height, width] or [pictures, height, width, channels].",
        )
    pictures = images.view(np.uint8)
    return pictures if pictures.ndim == 4 else pictures[..., None]


def pixels(images: npt.NDArray[np.uint8]) -> Tensor:
    """Bytes [N, height, width, channels] as a network sees them: numbers from -1 to 1, [N, channels, height, width]."""
    import torch

    if images.ndim != 4:
        raise InputError(
            f"pictures have shape {list(images.shape)}.", remedy="Give [pictures, height, width, channels]."
        )
    return torch.from_numpy(np.array(images)).permute(0, 3, 1, 2).float() / 127.5 - 1


def read_array(path: Path) -> npt.NDArray[np.generic]:
    """Numbers of an IDX or .npy file; nothing in it is executed."""
    try:
        with path.open("rb") as file:
            contents = file.read()
        if contents.startswith(b"\x1f\x8b"):
            with gzip.GzipFile(fileobj=io.BytesIO(contents)) as packed:
                contents = packed.read(LARGEST + 1)
    except FileNotFoundError as error:
        raise InputError("there is no such file.", where=str(path)) from error
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"cannot be read: {error}.", where=str(path)) from error
    if len(contents) > LARGEST:
        raise InputError("the file unpacks to more than 4 GiB.", where=str(path), remedy="Give it in parts.")
    if contents.startswith(b"\x93NUMPY"):
        return _npy(contents, path)
    return _idx(contents, path)


def _npy(contents: bytes, path: Path) -> npt.NDArray[np.generic]:
    """NumPy's own format, as it stands in memory: what a header says is believed only if the numbers are there."""
    try:
        file = io.BytesIO(contents)
        version = np.lib.format.read_magic(file)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, in_columns, kind = read(file)
        if kind.hasobject:
            raise ValueError("it holds Python objects, which are not loaded")
        if len(contents) - file.tell() != math.prod(shape) * kind.itemsize:
            raise ValueError("it is longer or shorter than its header says")
        numbers: npt.NDArray[np.generic] = np.frombuffer(contents[file.tell() :], dtype=kind)
        return numbers.reshape(shape, order="F" if in_columns else "C")
    except (ValueError, TypeError, SyntaxError, TokenError) as error:  # the latter two: a header that is no header
        raise InputError(
            f"the .npy file is damaged: {error}.", where=str(path), remedy="Save it again with numpy.save."
        ) from error


def _idx(contents: bytes, path: Path) -> npt.NDArray[np.uint8]:
    """Two zeros, the kind of number, the number of dimensions, each as four bytes, and then the numbers."""
    if len(contents) < 4 or contents[:2] != b"\0\0" or contents[2] != BYTES:
        raise InputError(
            "neither an IDX file of bytes nor a .npy file.",
            where=str(path),
            remedy="Save pictures with numpy.save, as bytes [pictures, height, width].",
        )
    start = 4 + 4 * contents[3]
    shape = np.frombuffer(contents[4:start][: (len(contents[4:start]) // 4) * 4], dtype=">u4").tolist()
    if len(shape) != contents[3] or len(contents) - start != math.prod(shape):
        raise InputError("the IDX file is cut off or damaged.", where=str(path), remedy="Copy it again.")
    if len(shape) > MOST_DIMENSIONS:
        raise InputError(f"{len(shape)} dimensions are too many for pictures or labels.", where=str(path))
    numbers: npt.NDArray[np.uint8] = np.frombuffer(contents[start:], dtype=np.uint8)
    return numbers.reshape(tuple(shape))
