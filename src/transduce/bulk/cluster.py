"""Blocks translated by the workers of a Ray cluster, or of a Ray that is started here."""

from __future__ import annotations

import pickle
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transduce.bulk.processes import WorkersLostError
from transduce.bulk.records import Block, Records
from transduce.bulk.worker import BlockTranslator, Done, Work
from transduce.cluster import connected, machine_cores

__all__ = ["Blocks", "by_ray"]

MOST_TRIES = 3
"""Times that a block is begun, because the workers that had it have ended, before it is left."""


@dataclass(frozen=True)
class Blocks:
    """Those blocks of a file that are wanted, cut again whenever they are asked for."""

    records: Records
    path: Path
    size: int
    wanted: frozenset[int]

    def __iter__(self) -> Iterator[Block]:
        return (block for block in self.records.blocks(self.path, self.size) if block.number in self.wanted)


def by_ray(work: Work, workers: int | None, address: str | None, blocks: Blocks) -> Iterator[Done]:
    """The blocks as they are done, by actors of Ray Data with a model each; a lost one is replaced by Ray.

    The file is read where this process is, a few blocks ahead of need; the translations come back to it.
    """
    with connected(workers, address) as ray:
        machines = machine_cores(ray)
        workers = workers or max(1, sum(machines))
        work = replace(work, threads=threads_each(workers, machines))
        context = ray.data.DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # each of our blocks is one of Ray's, to be handed out by itself
        tally = ray.remote(num_cpus=0, max_restarts=-1, max_task_retries=-1)(_Tally).remote()
        here = f"node:{ray.util.get_node_ip_address()}"
        with ray.data.DataContext.current(context):
            data = ray.data.from_items([pickle.dumps(blocks)])
            data = data.map_batches(_read, batch_size=1, num_cpus=0, resources={here: 0.001})
            data = data.map_batches(
                _Actor,
                fn_constructor_args=(work, tally),
                batch_size=1,
                num_cpus=work.threads,
                compute=ray.data.ActorPoolStrategy(size=workers),
            )
            try:
                for row in data.iter_rows():
                    yield pickle.loads(row["done"])
            except ray.exceptions.RayError as error:
                raise WorkersLostError(str(error).strip().splitlines()[-1]) from error


def threads_each(workers: int, machines: list[int]) -> int:
    """The most threads that so many workers can have each, on machines with so many cores."""
    fitting = (each for each in range(max(machines, default=1), 0, -1) if sum(n // each for n in machines) >= workers)
    return next(fitting, 1)


class _Tally:
    """How often each block was begun: Ray itself would hand out one that kills its workers for ever."""

    def __init__(self) -> None:
        self._begun: Counter[int] = Counter()

    def begin(self, number: int) -> int:
        self._begun[number] += 1
        return self._begun[number]


class _Actor:
    def __init__(self, work: Work, tally: Any) -> None:
        self._translate, self._tally = BlockTranslator(work), tally

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"done": [pickle.dumps(self._done(pickle.loads(block))) for block in batch["block"]]}

    def _done(self, block: Block) -> Done:
        import ray

        if ray.get(self._tally.begin.remote(block.number)) > MOST_TRIES:
            return Done(block.number, failure="workers end in the midst of them; the system may be out of memory")
        return self._translate(block)


def _read(batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for blocks in batch["item"]:
        for block in pickle.loads(blocks):
            yield {"block": [pickle.dumps(block)]}
