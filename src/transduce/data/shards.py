"""Token ids on disk, read through memory maps: memory does not grow with the corpus.

A set of pairs is a directory with, for each side, `<side>.ids` (all ids one after the other) and `<side>.ends` (where
each sentence ends), little-endian, and `pairs.json`, written last, which says that the rest is complete.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO

import numpy as np
import numpy.typing as npt

from transduce.errors import InputError

__all__ = ["Ids", "PairWriter", "Pairs"]

Ids = npt.NDArray[np.uint32]
ID_TYPE, END_TYPE = "<u4", "<u8"
SIDES = ("source", "target")


class PairWriter:
    """Writes pairs of id sequences as they come; nothing is readable before the `with` block has ended well."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.count = 0
        self.tokens = dict.fromkeys(SIDES, 0)
        self._files: dict[str, BinaryIO] = {}

    def __enter__(self) -> PairWriter:
        self.directory.mkdir(parents=True, exist_ok=True)
        (self.directory / "pairs.json").unlink(missing_ok=True)
        for side in SIDES:
            for part in ("ids", "ends"):
                self._files[f"{side}.{part}"] = open(self.directory / f"{side}.{part}", "wb")
        return self

    def write(self, source: Iterable[int], target: Iterable[int]) -> None:
        """Add one pair."""
        for side, ids in (("source", source), ("target", target)):
            values = np.fromiter(ids, dtype=ID_TYPE)
            self.tokens[side] += len(values)
            self._files[f"{side}.ids"].write(values.tobytes())
            self._files[f"{side}.ends"].write(np.array(self.tokens[side], dtype=END_TYPE).tobytes())
        self.count += 1

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
        if kind is None:
            contents = json.dumps({"pairs": self.count, "tokens": self.tokens})
            (self.directory / "pairs.json.part").write_text(contents, encoding="utf-8")
            (self.directory / "pairs.json.part").replace(self.directory / "pairs.json")


class Pairs:
    """Pairs of id sequences, in any order, read from disk when they are asked for."""

    def __init__(self, directory: Path) -> None:
        try:
            summary: dict[str, Any] = json.loads((directory / "pairs.json").read_text(encoding="utf-8"))
            self.count: int = summary["pairs"]
            self.tokens: dict[str, int] = summary["tokens"]
            self._ids = {side: _mapped(directory / f"{side}.ids", ID_TYPE) for side in SIDES}
            self._ends = {side: _mapped(directory / f"{side}.ends", END_TYPE) for side in SIDES}
        except (OSError, ValueError, KeyError, TypeError) as error:  # ValueError: no JSON, or half an id at the end
            raise InputError(
                "the prepared data is missing or incomplete.",
                where=str(directory),
                remedy="Delete the directory; it is made again.",
            ) from error
        for side in SIDES:
            if len(self._ids[side]) != self.tokens[side] or len(self._ends[side]) != self.count:
                raise InputError(
                    f"the prepared data's {side} side is not as long as it should be.",
                    where=str(directory),
                    remedy="Delete the directory; it is made again.",
                )

    def __len__(self) -> int:
        return self.count

    def lengths(self, side: str, indices: npt.NDArray[np.int64]) -> npt.NDArray[np.int64]:
        """Token counts of some pairs."""
        ends = self._ends[side]
        starts = np.where(indices > 0, ends[np.maximum(indices, 1) - 1], 0)
        return (ends[indices] - starts).astype(np.int64)

    def ids(self, side: str, index: int) -> Ids:
        """The ids of one sentence."""
        ends = self._ends[side]
        start = int(ends[index - 1]) if index else 0
        return self._ids[side][start : int(ends[index])]


def _mapped(path: Path, kind: str) -> npt.NDArray[Any]:
    if path.stat().st_size == 0:  # an empty file cannot be mapped
        return np.empty(0, dtype=kind)
    return np.memmap(path, dtype=kind, mode="r")
