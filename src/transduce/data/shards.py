"""Token ids on disk, read through memory maps: memory does not grow with the corpus.

A set of pairs is a directory with, for each side, `<side>.ids` (all ids one after the other) and `<side>.ends` (where
each sentence ends), little-endian, and `pairs.json`, written last, which says which pairs came from which corpus, and
that the rest is complete.
"""

from __future__ import annotations

import json
import mmap
from collections.abc import Iterable
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from transduce.errors import InputError

__all__ = ["Ids", "PairWriter", "Pairs", "Span"]

Ids = npt.NDArray[np.uint32]
ID_TYPE, END_TYPE = "<u4", "<u8"
SIDES = ("source", "target")

SENTENCES_IN_MEMORY = 50_000
"""Read before what was read is forgotten: else, after an epoch, all of the corpus would lie in memory."""


class Span(NamedTuple):
    """The pairs `start` … `end`-1, which came from one corpus, and how often an epoch sees each of them."""

    start: int
    end: int
    weight: float = 1.0

    def times(self) -> tuple[int, int]:
        """How often an epoch sees all of its pairs, and how many of them once more; never none at all."""
        size, whole = self.end - self.start, int(self.weight)
        more = round((self.weight - whole) * size)
        return whole, more if whole else min(size, max(1, more))


class PairWriter:
    """Writes pairs of id sequences as they come; nothing is readable before the `with` block has ended well."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.count = 0
        self.spans: list[Span] = []
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

    def end_corpus(self, weight: float) -> None:
        """What was written since the last such call is a corpus of this weight; pairs after the last have weight 1."""
        self.spans.append(Span(self.spans[-1].end if self.spans else 0, self.count, weight))

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for file in self._files.values():
            file.close()
        if kind is None:
            if self.count > (self.spans[-1].end if self.spans else 0):
                self.end_corpus(weight=1.0)
            contents = json.dumps({"pairs": self.count, "tokens": self.tokens, "spans": self.spans})
            (self.directory / "pairs.json.part").write_text(contents, encoding="utf-8")
            (self.directory / "pairs.json.part").replace(self.directory / "pairs.json")


class Pairs:
    """Pairs of id sequences, in any order, read from disk when they are asked for."""

    def __init__(self, directory: Path) -> None:
        try:
            summary: dict[str, Any] = json.loads((directory / "pairs.json").read_text(encoding="utf-8"))
            self.count: int = summary["pairs"]
            self.tokens: dict[str, int] = summary["tokens"]
            self.spans = [Span(*span) for span in summary["spans"]]
            maps = {name: _Map(directory / name) for side in SIDES for name in (f"{side}.ids", f"{side}.ends")}
            self._ids = {side: maps[f"{side}.ids"].array(ID_TYPE) for side in SIDES}
            self._ends = {side: maps[f"{side}.ends"].array(END_TYPE) for side in SIDES}
            self._maps, self._read = list(maps.values()), 0
        except (OSError, ValueError, KeyError, TypeError) as error:  # ValueError: no JSON, or half an id at the end
            raise InputError(
                "the prepared data is missing or incomplete.",
                where=str(directory),
                remedy="Delete the directory; it is made again.",
            ) from error
        whole = [span.start for span in self.spans] + [self.count] == [0] + [span.end for span in self.spans]
        for side in SIDES:
            if not whole or len(self._ids[side]) != self.tokens[side] or len(self._ends[side]) != self.count:
                raise InputError(
                    f"the prepared data's {side} side is not as long as it should be.",
                    where=str(directory),
                    remedy="Delete the directory; it is made again.",
                )

    def __len__(self) -> int:
        return self.count

    def lengths(self, side: str, indices: npt.NDArray[np.integer[Any]]) -> npt.NDArray[np.int64]:
        """Token counts of some pairs."""
        ends = self._ends[side]
        starts = np.where(indices > 0, ends[np.maximum(indices, 1) - 1], 0)
        lengths: npt.NDArray[np.int64] = (ends[indices] - starts).astype(np.int64)
        return lengths

    def ids(self, side: str, index: int) -> Ids:
        """The ids of one sentence."""
        self._read += 1
        if self._read % SENTENCES_IN_MEMORY == 0:
            for each in self._maps:
                each.forget()
        ends = self._ends[side]
        start = int(ends[index - 1]) if index else 0
        return self._ids[side][start : int(ends[index])]


class _Map:
    """A file as memory that is read when it is used."""

    def __init__(self, path: Path) -> None:
        with path.open("rb") as file:
            # An empty file cannot be mapped.
            self._memory = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) if path.stat().st_size else None

    def array(self, kind: str) -> npt.NDArray[Any]:
        return np.frombuffer(self._memory or b"", dtype=kind)

    def forget(self) -> None:
        """Give back the memory of what was read; it is read again when it is used again. Only Unix needs to be told."""
        if self._memory is not None and hasattr(mmap, "MADV_DONTNEED"):
            self._memory.madvise(mmap.MADV_DONTNEED)
