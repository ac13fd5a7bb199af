"""Blocks translated by the workers of a Ray cluster, or of a Ray that is started here."""

from __future__ import annotations

import logging
import os
import pickle
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from transduce.bulk.processes import WorkersLostError
from transduce.bulk.records import Block, Records
from transduce.bulk.worker import BlockTranslator, Done, Work
from transduce.errors import ConfigError
from transduce.processes import cores

__all__ = ["Blocks", "by_ray", "connected"]

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what workers say is in Ray's own logs
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Read when Ray is imported or started; what is set already stays."""
SECONDS_TO_ANSWER = 10


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
        machines = [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]
        workers = workers or max(1, sum(machines))
        work = replace(work, threads=threads_each(workers, machines))
        context = ray.data.DataContext.get_current().copy()
        context.enable_progress_bars = False
        context.target_max_block_size = 1  # each of our blocks is one of Ray's, to be handed out by itself
        here = f"node:{ray.util.get_node_ip_address()}"
        with ray.data.DataContext.current(context):
            data = ray.data.from_items([pickle.dumps(blocks)])
            data = data.map_batches(_read, batch_size=1, num_cpus=0, resources={here: 0.001})
            data = data.map_batches(
                _Actor,
                fn_constructor_args=(work,),
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


class _Actor:
    def __init__(self, work: Work) -> None:
        self._translate = BlockTranslator(work)

    def __call__(self, batch: dict[str, Any]) -> dict[str, Any]:
        return {"done": [pickle.dumps(self._translate(pickle.loads(block))) for block in batch["block"]]}


def _read(batch: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for blocks in batch["item"]:
        for block in pickle.loads(blocks):
            yield {"block": [pickle.dumps(block)]}


@contextmanager
def connected(workers: int | None = None, address: str | None = None) -> Iterator[Any]:
    """Ray, connected: as it is if it is already, else to the cluster, else started here and ended afterwards."""
    address = address or os.environ.get("RAY_ADDRESS")
    if address:
        _check_there(address)
    for name, value in QUIET.items():
        os.environ.setdefault(name, value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Ray warns of its own ways
        try:
            import ray
            import ray.data
        except ImportError as error:
            raise ConfigError("Ray is not installed.", remedy="Run: pip install 'transduce[cluster]'") from error
        logging.getLogger("ray").setLevel(logging.ERROR)
        logging.getLogger("ray.data").setLevel(logging.CRITICAL)
        if ray.is_initialized():
            yield ray
            return
        options: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.ERROR}
        try:
            if not address:
                options |= {"include_dashboard": False, "num_cpus": max(cores(), workers or 1)}
            with _stderr_shut():  # of the log level, which is to be quiet, it speaks aloud
                ray.init(address or "local", **options)
        except (ConnectionError, ValueError, RuntimeError) as error:
            raise _no_cluster(address) if address else ConfigError(f"Ray does not start: {error}") from error
        try:
            yield ray
        finally:
            ray.shutdown()


def _check_there(address: str) -> None:
    """Refuse an address where nothing answers; Ray itself would try for minutes."""
    host, _, port = address.rpartition("://")[2].rpartition(":")
    if not host or not port.isdigit():
        return  # "auto" and the like, which Ray knows
    try:
        socket.create_connection((host, int(port)), SECONDS_TO_ANSWER).close()
    except OSError as error:
        raise _no_cluster(address) from error


def _no_cluster(address: str) -> ConfigError:
    return ConfigError(
        f"there is no Ray cluster at {address}.",
        remedy="Look with: ray status. Without --ray-address and RAY_ADDRESS, Ray is started on this machine.",
    )


@contextmanager
def _stderr_shut() -> Iterator[None]:
    """Nothing is written to standard error, not by libraries in other languages either."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    try:
        os.dup2(nowhere, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nowhere)
