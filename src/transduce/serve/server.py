"""The service on a port: it listens, and ends in good order."""

from __future__ import annotations

import signal
import socket
import time
from collections.abc import Callable
from types import FrameType

import uvicorn

from transduce.errors import ConfigError
from transduce.serve.app import make_app
from transduce.serve.service import Service

__all__ = ["bind", "run"]

CONNECTIONS = 2000
"""Open at once; beyond that uvicorn answers 503 by itself."""


def bind(host: str, port: int) -> socket.socket:
    """Take a port, before anything is loaded; 0 is any that is free."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        listener = socket.socket(family, kind, protocol)
        if hasattr(socket, "SO_REUSEADDR") and not hasattr(socket, "SO_EXCLUSIVEADDRUSE"):
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
    except OSError as error:
        raise ConfigError(
            f"cannot listen on {host} port {port}: {str(error.strerror).lower()}.",
            remedy="Choose another with --host and --port.",
        ) from error
    return listener


def run(
    service: Service, listener: socket.socket, *, drain: int, grace: int, behind_proxy: bool, ready: Callable[[], None]
) -> None:
    """Serve until told to stop; then for `drain` seconds more, not ready; then finish what was accepted.

    That may take `grace` seconds. Ctrl-C, or being told a second time, does without `drain`.
    """

    class Server(uvicorn.Server):
        until: float | None = None

        async def startup(self, sockets: list[socket.socket] | None = None) -> None:
            await super().startup(sockets)
            ready()

        def handle_exit(self, sig: int, frame: FrameType | None) -> None:
            if sig == signal.SIGTERM and not service.stopping:
                self.until = time.monotonic() + drain
            else:
                super().handle_exit(sig, frame)
            service.stopping = True

        async def on_tick(self, counter: int) -> bool:
            if self.until is not None and time.monotonic() >= self.until:
                self.until = None
                super().handle_exit(signal.SIGTERM, None)
            return await super().on_tick(counter)

    config = uvicorn.Config(
        make_app(service),
        log_config=None,
        access_log=False,  # it would write what is asked, which may hold text
        server_header=False,
        date_header=True,
        proxy_headers=behind_proxy,
        timeout_graceful_shutdown=grace,
        limit_concurrency=CONNECTIONS,
        lifespan="on",
    )
    Server(config).run(sockets=[listener])
