"""Pairs of texts to ids, by this process or by several, in the order in which they come."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import Future, ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from functools import partial
from types import TracebackType
from typing import NamedTuple

from transduce.data.corpus import Pair
from transduce.data.shards import IdRows
from transduce.errors import StorageError
from transduce.processes import pool
from transduce.text import Vocabularies

__all__ = ["Encoded", "Encoder"]

BLOCKS_EACH = 3
"""Blocks that a process has at most: one at work, and some so that it need not wait."""
TEXTS = 256
"""Texts that a process encodes at a time: with more, SentencePiece would start threads for all cores."""


class Encoded(NamedTuple):
    """The ids of some pairs."""

    source: IdRows
    target: IdRows


class Encoder:
    """Encodes blocks of pairs. With several processes it must be used as a context, and no block is done twice."""

    def __init__(self, vocabularies: Vocabularies, processes: int = 1) -> None:
        self.vocabularies, self.processes = vocabularies, processes
        self._pool: ProcessPoolExecutor | None = None

    def __enter__(self) -> Encoder:
        if self.processes > 1:
            self._pool = pool(self.processes, _start, self.vocabularies)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)

    def encode(self, pairs: Sequence[Pair], language: str | None) -> Encoded:
        """The ids of pairs, by this process; `language` is the one whose tag they get, if any."""
        return _encoded(self.vocabularies, pairs, language)

    def blocks(self, blocks: Iterable[Sequence[Pair]], language: str | None) -> Iterator[Encoded]:
        """The ids of blocks of pairs, in order; a few blocks are taken ahead of need."""
        if self._pool is None:
            yield from map(partial(self.encode, language=language), blocks)
            return
        begun: deque[Future[Encoded]] = deque()
        try:
            for block in blocks:
                begun.append(self._pool.submit(_encode, [(source, target) for source, target in block], language))
                if len(begun) >= self.processes * BLOCKS_EACH:
                    yield begun.popleft().result()
            while begun:
                yield begun.popleft().result()
        except BrokenProcessPool as error:
            raise StorageError(
                "a process that encodes text has ended; the system may be out of memory.",
                remedy="Run the same command again.",
            ) from error


def _encoded(vocabularies: Vocabularies, pairs: Sequence[Sequence[str]], language: str | None) -> Encoded:
    sources = vocabularies.encode_sources([source for source, _ in pairs], language)
    targets = vocabularies.encode_targets([target for _, target in pairs], language)
    return Encoded(IdRows.of(sources), IdRows.of(targets))


_vocabularies: Vocabularies


def _start(vocabularies: Vocabularies) -> None:
    global _vocabularies
    _vocabularies = vocabularies


def _encode(pairs: list[tuple[str, str]], language: str | None) -> Encoded:
    parts = [_encoded(_vocabularies, pairs[start : start + TEXTS], language) for start in range(0, len(pairs), TEXTS)]
    return Encoded(IdRows.joined([part.source for part in parts]), IdRows.joined([part.target for part in parts]))
