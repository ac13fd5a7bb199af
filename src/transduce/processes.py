"""Processes that work for this one: how many there can be, and how they start and end."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from typing import Any

__all__ = ["cores", "pool"]


def cores() -> int:
    """The cores that this process may use, which in a container can be fewer than there are."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def pool(count: int, start: Callable[..., None], *arguments: Any) -> ProcessPoolExecutor:
    """So many processes, each of which calls `start` first. They end with this one, also if it is killed."""
    # Not copies of this one: a copy of a process whose libraries run threads can hang.
    context = multiprocessing.get_context("spawn")
    return ProcessPoolExecutor(count, context, initializer=_begin, initargs=(start, arguments))


def _begin(start: Callable[..., None], arguments: tuple[Any, ...]) -> None:
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that this one works for
    threading.Thread(target=_end_with_parent, daemon=True).start()
    start(*arguments)


def _end_with_parent() -> None:
    """Nobody would tell this process that the one it works for was killed."""
    parent = multiprocessing.parent_process()
    assert parent is not None
    parent.join()
    os._exit(1)
