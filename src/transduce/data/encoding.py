"""Pairs of texts to ids, in the order in which they come: by this process, by several, or by those of a cluster."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import cycle
from types import TracebackType
from typing import Any, NamedTuple

from transduce.cluster import Cluster, connected, machine_cores
from transduce.data.corpus import Pair
from transduce.data.shards import IdRows
from transduce.errors import StorageError
from transduce.processes import pool
from transduce.text import Vocabularies

__all__ = ["Encoded", "Encoder", "Hands"]

BLOCKS_EACH = 3
"""Blocks that a process has at most: one at work, and some so that it need not wait."""
TEXTS = 256
"""Texts that a process encodes at a time: with more, SentencePiece would start threads for all cores."""
MOST_DEATHS = 3
"""Times that Ray starts a process again, and gives it the blocks that it had, before it is given up."""


class Encoded(NamedTuple):
    """The ids of some pairs."""

    source: IdRows
    target: IdRows


@dataclass(frozen=True)
class Hands:
    """Who encodes a large corpus."""

    processes: int = 1
    """Of this machine."""
    cluster: Cluster = "none"
    """With ray, its processes instead, one a core."""
    address: str | None = None
    """Of the cluster; else RAY_ADDRESS; else Ray is started on this machine."""


Begin = Callable[[list[tuple[str, str]], str | None], Callable[[], Encoded]]
"""Gives a block of pairs away; what is returned waits for its ids."""


class Encoder:
    """Encodes blocks of pairs. With other hands than its own it must be used as a context; no block is done twice."""

    def __init__(self, vocabularies: Vocabularies, hands: Hands | None = None) -> None:
        self.vocabularies, self.hands = vocabularies, hands or Hands()
        self._stack = ExitStack()
        self._begin: Begin | None = None
        self._most = 0

    def __enter__(self) -> Encoder:
        if self.hands.cluster == "ray":
            self._begin, count = _ray(self._stack, self.vocabularies, self.hands.address)
            self._most = count * BLOCKS_EACH
        elif self.hands.processes > 1:
            self._begin = _processes(self._stack, self.vocabularies, self.hands.processes)
            self._most = self.hands.processes * BLOCKS_EACH
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._begin = None
        self._stack.close()

    def encode(self, pairs: Sequence[Pair], language: str | None) -> Encoded:
        """The ids of pairs, by this process; `language` is the one whose tag they get, if any."""
        return _encoded(self.vocabularies, pairs, language)

    def blocks(self, blocks: Iterable[Sequence[Pair]], language: str | None) -> Iterator[Encoded]:
        """The ids of blocks of pairs, in order; a few blocks are taken ahead of need."""
        if self._begin is None:
            yield from map(partial(self.encode, language=language), blocks)
            return
        begun: deque[Callable[[], Encoded]] = deque()
        for block in blocks:
            begun.append(self._begin([(source, target) for source, target in block], language))
            if len(begun) >= self._most:
                yield begun.popleft()()
        while begun:
            yield begun.popleft()()


def _encoded(vocabularies: Vocabularies, pairs: Sequence[Sequence[str]], language: str | None) -> Encoded:
    sources = vocabularies.encode_sources([source for source, _ in pairs], language)
    targets = vocabularies.encode_targets([target for _, target in pairs], language)
    return Encoded(IdRows.of(sources), IdRows.of(targets))


class _Hand:
    """What encodes in a process of its own."""

    def __init__(self, vocabularies: Vocabularies) -> None:
        self.vocabularies = vocabularies

    def encode(self, pairs: list[tuple[str, str]], language: str | None) -> Encoded:
        starts = range(0, len(pairs), TEXTS)
        parts = [_encoded(self.vocabularies, pairs[start : start + TEXTS], language) for start in starts]
        return Encoded(IdRows.joined([part.source for part in parts]), IdRows.joined([part.target for part in parts]))


# Processes of this machine

_hand: _Hand


def _start(vocabularies: Vocabularies) -> None:
    global _hand
    _hand = _Hand(vocabularies)


def _encode(pairs: list[tuple[str, str]], language: str | None) -> Encoded:
    return _hand.encode(pairs, language)


def _processes(stack: ExitStack, vocabularies: Vocabularies, count: int) -> Begin:
    processes = pool(count, _start, vocabularies)
    stack.callback(processes.shutdown, cancel_futures=True)

    def begin(pairs: list[tuple[str, str]], language: str | None) -> Callable[[], Encoded]:
        with _all_there():
            future = processes.submit(_encode, pairs, language)

        def wait() -> Encoded:
            with _all_there():
                return future.result()

        return wait

    return begin


@contextmanager
def _all_there() -> Iterator[None]:
    try:
        yield
    except BrokenProcessPool as error:
        raise _lost("a process that encodes text has ended; the system may be out of memory") from error


# Processes of a cluster


def _ray(stack: ExitStack, vocabularies: Vocabularies, address: str | None) -> tuple[Begin, int]:
    ray: Any = stack.enter_context(connected(address=address))
    count = max(1, sum(machine_cores(ray)))
    hands = ray.remote(num_cpus=1, max_restarts=MOST_DEATHS, max_task_retries=MOST_DEATHS)(_Hand)
    held = ray.put(vocabularies)
    stack.callback(lambda: held)  # keeps them: a process that takes the place of a lost one asks for them again
    turns = cycle([hands.remote(held) for _ in range(count)])

    def begin(pairs: list[tuple[str, str]], language: str | None) -> Callable[[], Encoded]:
        promised = next(turns).encode.remote(pairs, language)

        def wait() -> Encoded:
            try:
                encoded: Encoded = ray.get(promised)
            except ray.exceptions.RayError as error:
                last = str(error).strip().splitlines()[-1].strip()
                raise _lost(f"the cluster could not encode the text: {last}") from error
            return encoded

        return wait

    return begin, count


def _lost(what: str) -> StorageError:
    return StorageError(f"{what.rstrip('.')}.", remedy="Run the same command again.")
