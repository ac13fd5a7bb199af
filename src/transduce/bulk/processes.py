"""Blocks translated on this machine: by this process, or by several."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, wait
from concurrent.futures.process import BrokenProcessPool

from transduce.bulk.records import Block
from transduce.bulk.worker import BlockTranslator, Done, Work
from transduce.processes import pool

__all__ = ["WorkersLostError", "by_processes", "by_this_process"]

BLOCKS_EACH = 2
"""Blocks that a process has: one to translate, and one so that it need not wait."""


class WorkersLostError(Exception):
    """Workers have ended in the midst of their work, as when the system is out of memory."""


def by_this_process(work: Work, blocks: Iterable[Block]) -> Iterator[Done]:
    """The blocks one after the other; the next is begun before one is waited for."""
    translate = BlockTranslator(work)
    begun: Callable[[], Done] | None = None
    for block in blocks:
        before, begun = begun, translate.begin(block)
        if before is not None:
            yield before()
    if begun is not None:
        yield begun()


def by_processes(work: Work, workers: int, blocks: Iterable[Block]) -> Iterator[Done]:
    """The blocks as they are done, by so many processes, each with a model of its own."""
    processes = pool(workers, _start, work)
    begun: set[Future[Done]] = set()
    try:
        for block in blocks:
            begun.add(processes.submit(_translate, block))
            if len(begun) >= workers * BLOCKS_EACH:
                done, begun = wait(begun, return_when=FIRST_COMPLETED)
                yield from (each.result() for each in done)
        while begun:
            done, begun = wait(begun, return_when=FIRST_COMPLETED)
            yield from (each.result() for each in done)
    except BrokenProcessPool as error:
        raise WorkersLostError("a worker process ended; the system may be out of memory") from error
    finally:
        processes.shutdown(cancel_futures=True)


_translator: BlockTranslator


def _start(work: Work) -> None:
    global _translator
    os.environ["OMP_NUM_THREADS"] = str(work.threads)  # read by PyTorch when it is first needed
    _translator = BlockTranslator(work)


def _translate(block: Block) -> Done:
    return _translator(block)
