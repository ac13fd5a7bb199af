"""A picture as it is named on the command line: one of the built-in ones, or one of a file."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from transduce.data.builtin import BUILTIN, builtin_files
from transduce.data.images import read_images
from transduce.errors import InputError

__all__ = ["picture_argument"]


def picture_argument(given: str, index: int | None) -> tuple[NDArray[np.uint8], str]:
    """The picture [height, width, channels] that `mnist:17` or a file and a number mean, and what to call it.

    Pictures are counted from 0; a built-in one is of the test set, which no model has been trained on.
    """
    name, colon, number = given.partition(":")
    if name in BUILTIN and not os.path.exists(given):
        if BUILTIN[name].contents != "pictures":
            raise InputError(f"{name} holds no pictures.", remedy=f"Use mnist:{index or 0}, or a file.")
        if colon and not number.isdecimal():
            raise InputError(f"{given!r} has no number of a picture.", remedy=f"Use {name}:0 for the first.")
        path, place = builtin_files(name, "test")[0], int(number) if colon else index or 0
    else:
        path, place, name = Path(given), index or 0, Path(given).name
    pictures = read_images(path)
    if not 0 <= place < len(pictures):
        raise InputError(
            f"there is no picture {place}.", where=name, remedy=f"Pictures are counted from 0 to {len(pictures) - 1}."
        )
    return pictures[place], f"{name}:{place}"
