"""Token ids on disk, read when they are needed: memory does not grow with the corpus.

A set of pairs is a directory with, for each side, `<side>.ids` (all ids one after the other) and `<side>.ends` (where
each sentence ends), little-endian, and `pairs.json`, written last, which says which pairs came from which corpus, and
that the rest is complete.
"""

from __future__ import annotations

import json
import os
import threading
import weakref
from collections.abc import Iterable, Sequence
from itertools import chain
from pathlib import Path
from types import TracebackType
from typing import Any, BinaryIO, NamedTuple

import numpy as np
import numpy.typing as npt

from transduce.errors import InputError

__all__ = ["IdRows", "Ids", "PairWriter", "Pairs", "Span"]

Ids = npt.NDArray[np.uint32]
ID_TYPE, END_TYPE = "<u4", "<u8"
SIDES = ("source", "target")


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


class IdRows(NamedTuple):
    """Id sequences one after the other, and how long each is."""

    ids: Ids
    lengths: npt.NDArray[np.uint64]

    @classmethod
    def of(cls, rows: Sequence[Sequence[int]]) -> IdRows:
        """Of lists of ids."""
        lengths = np.fromiter(map(len, rows), dtype=END_TYPE, count=len(rows))
        return cls(np.fromiter(chain.from_iterable(rows), dtype=ID_TYPE, count=int(lengths.sum())), lengths)

    @classmethod
    def joined(cls, parts: Sequence[IdRows]) -> IdRows:
        """All the sequences of some parts."""
        return cls(*(np.concatenate(arrays) for arrays in zip(*parts, strict=True))) if parts else cls.of([])


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
        self.write_rows(IdRows.of([list(source)]), IdRows.of([list(target)]))

    def write_rows(self, source: IdRows, target: IdRows) -> None:
        """Add many pairs."""
        for side, rows in (("source", source), ("target", target)):
            ends = np.cumsum(rows.lengths, dtype=END_TYPE) + np.array(self.tokens[side], dtype=END_TYPE)
            self.tokens[side] += len(rows.ids)
            self._files[f"{side}.ids"].write(rows.ids.tobytes())
            self._files[f"{side}.ends"].write(ends.tobytes())
        self.count += len(source.lengths)

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
            self._ids = {side: _Numbers(directory / f"{side}.ids", ID_TYPE) for side in SIDES}
            self._ends = {side: _Numbers(directory / f"{side}.ends", END_TYPE) for side in SIDES}
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
        spans = (self._span(side, index) for index in indices.tolist())
        return np.fromiter((end - start for start, end in spans), dtype=np.int64, count=len(indices))

    def ids(self, side: str, index: int) -> Ids:
        """The ids of one sentence."""
        return self._ids[side].read(*self._span(side, index))

    def stream(self, side: str, start: int, end: int) -> Ids:
        """The ids `start` … `end`-1 of a side, across sentences: all texts one after the other."""
        return self._ids[side].read(start, end)

    def _span(self, side: str, index: int) -> tuple[int, int]:
        """Where the ids of a sentence start and end."""
        ends = self._ends[side].read(max(index, 1) - 1, index + 1)
        return int(ends[0]) if index else 0, int(ends[-1])


class _Numbers:
    """Numbers in a file, read when they are asked for, by several threads at once.

    The file is not mapped into memory: the pages of a map count as memory of the process, and after an epoch that
    would be all of the corpus.
    """

    def __init__(self, path: Path, kind: str) -> None:
        self._kind = np.dtype(kind)
        self._length, rest = divmod(path.stat().st_size, self._kind.itemsize)
        if rest:
            raise ValueError("half a number at the end")
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_BINARY", 0))
        self._lock = threading.Lock()
        weakref.finalize(self, os.close, self._file)

    def __len__(self) -> int:
        return self._length

    def read(self, start: int, end: int) -> npt.NDArray[Any]:
        """The numbers `start` … `end`-1."""
        size = self._kind.itemsize
        return np.frombuffer(self._bytes(start * size, (end - start) * size), dtype=self._kind)

    def _bytes(self, position: int, count: int) -> bytes:
        if hasattr(os, "pread"):
            return os.pread(self._file, count, position)
        with self._lock:  # Windows: finding the place and reading are two steps
            os.lseek(self._file, position, os.SEEK_SET)
            return os.read(self._file, count)
