"""A cluster of machines that work for this one: Ray, connected to or started here."""

from __future__ import annotations

import logging
import os
import socket
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, Literal

from transduce.errors import ConfigError
from transduce.processes import cores

__all__ = ["Cluster", "connected", "machine_cores"]

Cluster = Literal["none", "ray"]

QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is sent anywhere
    "RAY_BACKEND_LOG_LEVEL": "fatal",
    "RAY_DEDUP_LOGS_SKIP_REGEX": ".",  # what workers say is in Ray's own logs
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
}
"""Read when Ray is imported or started; what is set already stays."""
SECONDS_TO_ANSWER = 10


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


def machine_cores(ray: Any) -> list[int]:
    """The cores of each machine of the cluster."""
    return [int(node["Resources"].get("CPU", 0)) for node in ray.nodes() if node["Alive"]]


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
