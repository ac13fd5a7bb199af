"""Ranks: the processes that train one model together, on one machine or on many, and what they tell each other.

Every rank has the same weights and takes its rows of every batch; gradients are added up over all of them before the
update. So so many ranks make the steps that one would make, a run can go on with another number of them, and a batch's
tokens are those of all ranks together, as in the paper.
"""

from __future__ import annotations

import os
import socket
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, TypeVar, cast

import torch
import torch.distributed as dist
from torch import Tensor
from torch.distributed.distributed_c10d import PrefixStore, Store
from torch.distributed.rendezvous import rendezvous

from transduce.data.batches import Indices
from transduce.errors import ConfigError, ModelError
from transduce.model.workers import Workers

__all__ = ["ALONE", "TIMEOUT", "Ranks", "free_port", "joined_ranks"]

Item = TypeVar("Item")
Result = TypeVar("Result")

TIMEOUT = 300.0
"""Seconds after which a rank that does not answer is given up."""
LOOK_AGAIN = timedelta(seconds=20)
PAUSE = 0.02
"""Seconds between two looks for what others have to say."""
BUCKET = 25_000_000
"""Bytes of gradients that are sent together, as PyTorch's own DistributedDataParallel has it."""


class Ranks:
    """So many processes, of which this is one; a single one tells nobody anything."""

    def __init__(self, rank: int = 0, count: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.count = rank, count
        self.device = device or torch.device("cuda" if torch.cuda.is_available() else "cpu")
        """What this rank computes on."""
        self._turns = 0

    @property
    def leads(self) -> bool:
        """Whether this rank writes files and says what happens."""
        return self.rank == 0

    def shares(self, plan: Iterator[Indices], epoch: int, start: int) -> Iterator[tuple[Indices, tuple[int, ...]]]:
        """This rank's rows of each batch of an epoch from number `start` on, and what seeds chance in making them.

        Rows of a batch come by length, and every so many-th is taken: all ranks have about the same to do.
        """
        mine = (self.rank,) if self.count > 1 else ()
        for number, rows in enumerate(plan):
            if number >= start:
                yield rows[self.rank :: self.count], (epoch, number, *mine)

    def map(self, workers: Workers, function: Callable[[Item], Result], items: Sequence[Item]) -> Iterator[Result]:
        """As the built-in `map`, its work shared among all ranks and their workers; each rank has all results."""
        mine = workers.map(function, items[self.rank :: self.count])
        if self.count == 1:
            return mine
        found: list[Any] = [None] * self.count
        results = list(mine)
        with self._connected():
            dist.all_gather_object(found, results)
        return (found[number % self.count][number // self.count] for number in range(len(items)))

    def total(self, *numbers: float) -> list[float]:
        """The sum of each number over all ranks."""
        if self.count == 1:
            return list(numbers)
        sums = torch.tensor(numbers, dtype=torch.float64)
        with self._connected():
            dist.all_reduce(sums)
        return cast(list[float], sums.tolist())

    def add_up(self, tensors: Sequence[Tensor]) -> None:
        """Put the sum over all ranks into each tensor."""
        if self.count == 1:
            return
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            with self._connected():
                dist.all_reduce(flat)
            _put_back(flat, bucket)

    def take_over(self, tensors: Sequence[Tensor]) -> None:
        """Put what the leader has into each tensor."""
        if self.count == 1:
            return
        for bucket in _buckets(tensors):
            flat = torch.cat([tensor.reshape(-1) for tensor in bucket])
            with self._connected():
                dist.broadcast(flat, 0)
            _put_back(flat, bucket)

    def of_leader(self, value: Result) -> Result:
        """What the leader has, on all ranks."""
        if self.count == 1:
            return value
        values = [value]
        with self._connected():
            dist.broadcast_object_list(values, 0)
        return values[0]

    def leader_first(self, work: Callable[[], Result]) -> Result:
        """Do what takes the leader however long; the others then find it done."""
        if self.count == 1:
            return work()
        self._turns += 1
        key, store = f"transduce/{self._turns}", dist.distributed_c10d._get_default_store()
        if self.leads:
            result = work()
            store.set(key, "done")
            return result
        with self._connected():
            while True:  # a leader that has died closes the store, or whoever started us ends us
                try:
                    store.wait([key], LOOK_AGAIN)
                    break
                except dist.DistStoreError as error:
                    if "timeout" not in str(error).lower():
                        raise
        return work()

    def wait(self) -> None:
        """Until all ranks are here."""
        self.total(0.0)

    @contextmanager
    def _connected(self) -> Iterator[None]:
        try:
            yield
        except RuntimeError as error:  # which all errors of torch.distributed are
            reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
            raise ModelError(
                f"rank {self.rank} of {self.count} has lost the others ({_shortened(reason)}).",
                remedy="Look what the others say. The same command goes on from the last checkpoint; torchrun "
                "--max-restarts does so by itself.",
            ) from error


ALONE = Ranks(device=torch.device("cpu"))
"""One process, for whoever has no others to think of."""


@contextmanager
def joined_ranks(timeout: float = TIMEOUT) -> Iterator[Ranks]:
    """Join the other ranks, if torchrun (or `train --devices`) has started several; its variables say which this is."""
    count = _number("WORLD_SIZE", 1)
    if count <= 1:
        yield Ranks()
        return
    rank, local = _number("RANK"), _number("LOCAL_RANK", 0)
    for name in ("MASTER_ADDR", "MASTER_PORT"):
        if name not in os.environ:
            raise ConfigError(f"WORLD_SIZE is {count}, but {name} is not set.", remedy="Start it with torchrun.")
    device = torch.device("cpu")
    if torch.cuda.is_available():  # untested on GPUs
        device = torch.device("cuda", local % torch.cuda.device_count())
        torch.cuda.set_device(device)
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    ranks = Ranks(rank, count, device)
    within = timedelta(seconds=timeout)
    with ranks._connected():
        store, _, _ = next(rendezvous("env://", timeout=within))
        fresh = PrefixStore(_agreed_name(store, rank, count, timeout), store)
        dist.init_process_group(backend, store=fresh, rank=rank, world_size=count, timeout=within)
    try:
        yield ranks
    finally:
        dist.destroy_process_group()


def _agreed_name(store: Store, rank: int, count: int, timeout: float) -> str:
    """A name for this meeting that none before it had.

    Torchrun keeps its store when it starts ranks again, and how often it has done so it counts on each machine by
    itself. Without a new name, ranks would look for each other where those before them were. So each one says a word
    that it has just made up, and goes by the answer to that word.
    """
    word, end = uuid.uuid4().hex, time.monotonic() + timeout

    def heard(key: str) -> str:
        if time.monotonic() > end:
            raise RuntimeError(f"nobody answered within {timeout:g} seconds")
        return store.get(key).decode() if store.check([key]) else ""

    if rank:
        store.set(f"word/{rank}", word)
        while not (answer := heard(f"answer/{rank}")).startswith(word):
            time.sleep(PAUSE)
        name = answer.removeprefix(word)
        store.set(f"agreed/{rank}", name)
        return name
    answered: dict[int, str] = {}
    while not all(heard(f"agreed/{other}") == word for other in range(1, count)):
        for other in range(1, count):
            asked = heard(f"word/{other}")
            if asked and answered.get(other) != asked:
                store.set(f"answer/{other}", asked + word)
                answered[other] = asked
        time.sleep(PAUSE)
    return word


def free_port() -> int:
    """A port of this machine that nobody listens at."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return cast(int, listener.getsockname()[1])


def _number(name: str, default: int | None = None) -> int:
    value = os.environ.get(name, "" if default is None else str(default))
    if not value.isdecimal():
        raise ConfigError(f"{name} is {value!r}, which is no number.", remedy="Start it with torchrun.")
    return int(value)


def _buckets(tensors: Sequence[Tensor]) -> Iterator[list[Tensor]]:
    """Tensors of one kind, in groups of about the size that is sent at once."""
    group: list[Tensor] = []
    size = 0
    for tensor in tensors:
        if group and (size >= BUCKET or tensor.dtype != group[0].dtype or tensor.device != group[0].device):
            yield group
            group, size = [], 0
        group.append(tensor)
        size += tensor.numel() * tensor.element_size()
    if group:
        yield group


@torch.no_grad()
def _put_back(flat: Tensor, bucket: Sequence[Tensor]) -> None:
    start = 0
    for tensor in bucket:
        end = start + tensor.numel()
        tensor.copy_(flat[start:end].view_as(tensor))
        start = end


def _shortened(reason: str, most: int = 160) -> str:
    return reason if len(reason) <= most else f"{reason[:most]}…"
