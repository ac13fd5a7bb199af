"""Threads that share the work of a batch, or of many: each has rows of its own.

On a CPU, PyTorch shares the work of every single operation among its threads. At the sizes of a small translator these
wait for each other much of the time, and stand still when anything else runs. Threads that have a part of the batch
each, and meet when it is done, do not (measured: docs/log.md).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from types import TracebackType
from typing import Any, TypeVar

import torch

__all__ = ["Workers"]

Result = TypeVar("Result")

TOKENS_EACH = 512
"""With fewer, a worker's matrix products become slow."""

AT_ONCE = 600_000
"""Size of a part: what a layer makes of it, in numbers. Larger ones take more memory and are no faster."""


class Workers:
    """So many threads; while in use, PyTorch has the machine's threads divided among them.

    Each computes parts of a batch, of at most the size `at_once` (see `Task.size`), one after the other.
    """

    def __init__(self, count: int = 1, at_once: float = math.inf) -> None:
        self.count, self.at_once = count, at_once
        self._pool: ThreadPoolExecutor | None = None
        self._threads = torch.get_num_threads()

    @classmethod
    def suited_to(cls, device: torch.device, batch_tokens: int) -> Workers:
        """On a CPU one for each thread, as long as a batch has enough for each to do; on a GPU one."""
        if device.type != "cpu":
            return cls()
        return cls(max(1, min(torch.get_num_threads(), batch_tokens // TOKENS_EACH)), AT_ONCE)

    def __enter__(self) -> Workers:
        if self.count > 1:
            self._threads = torch.get_num_threads()
            each = max(1, self._threads // self.count)
            torch.set_num_threads(each)
            # OpenMP has a number of threads for each thread that calls it.
            self._pool = ThreadPoolExecutor(self.count, initializer=lambda: torch.set_num_threads(each))
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._pool is not None:
            self._pool.shutdown(cancel_futures=True)
            self._pool = None
            torch.set_num_threads(self._threads)

    def map(self, function: Callable[..., Result], *items: Sequence[Any]) -> Iterator[Result]:
        """As the built-in `map`, by several threads; outside a `with` block one after the other."""
        if self._pool is None or len(items[0]) == 1:
            return map(function, *items)
        return self._pool.map(function, *items)
