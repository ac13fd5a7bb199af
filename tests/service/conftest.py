"""The real service: `transduce serve` in a process of its own, asked over sockets."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import Request, urlopen

import pytest


class Running:
    """A service that runs, and what it has said so far."""

    def __init__(self, process: subprocess.Popen[str], log: Path, url: str) -> None:
        self.process, self._log, self.url = process, log, url
        self.port = urlsplit(url).port

    @property
    def log(self) -> str:
        return self._log.read_text(encoding="utf-8")

    @property
    def memory(self) -> int:
        """Resident bytes."""
        found = re.search(r"VmRSS:\s+(\d+) kB", Path(f"/proc/{self.process.pid}/status").read_text())
        assert found
        return 1024 * int(found.group(1))

    def get(self, path: str) -> tuple[int, Any, dict[str, str]]:
        return self._answer(Request(self.url + path))

    def post(self, path: str, values: Any, **headers: str) -> tuple[int, Any, dict[str, str]]:
        body = values if isinstance(values, bytes) else json.dumps(values).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return self._answer(Request(self.url + path, body, {"content-type": "application/json"} | named))

    def figure(self, name: str) -> int:
        """One of its metrics; 0 if it has not been counted yet."""
        found = re.search(rf"^transduce_{re.escape(name)} (\d+)$", self.get("/metrics")[1], re.M)
        return int(found.group(1)) if found else 0

    def until_waiting(self, sentences: int = 1) -> None:
        """Go on when so many sentences wait; they must come to that."""
        deadline = time.monotonic() + 30
        while self.figure("waiting_sentences") < sentences:
            assert time.monotonic() < deadline
            time.sleep(0.005)

    def connection(self) -> socket.socket:
        """A bare connection, for what no client would send."""
        return socket.create_connection(("127.0.0.1", self.port or 0), timeout=20)

    @staticmethod
    def _answer(request: Request) -> tuple[int, Any, dict[str, str]]:
        try:
            with urlopen(request, timeout=60) as response:
                status, body, headers = response.status, response.read(), response.headers
        except HTTPError as error:
            status, body, headers = error.code, error.read(), error.headers
        is_json = headers.get("content-type", "").startswith("application/json")
        return status, json.loads(body) if is_json else body.decode(), {k.lower(): v for k, v in headers.items()}


@contextmanager
def running(folder: Path, *arguments: str | Path) -> Iterator[Running]:
    log = folder / f"log-{len(list(folder.iterdir()))}.txt"
    command = [sys.executable, "-m", "transduce", "serve", *map(str, arguments), "--port", "0"]
    with log.open("w") as file:
        process = subprocess.Popen(
            command, stderr=file, stdout=file, text=True, env=os.environ | {"OMP_NUM_THREADS": "1"}
        )
    try:
        while not (found := re.search(r"Ready: (http://\S+)", log.read_text())):
            assert process.poll() is None, log.read_text()
            try:
                process.wait(0.05)
            except subprocess.TimeoutExpired:
                continue
        yield Running(process, log, found.group(1))
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            process.wait(60)


@pytest.fixture(scope="session")
def serve(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., AbstractContextManager[Running]]:
    """A way to run one with some arguments, for as long as a `with` block lasts."""
    folder = tmp_path_factory.mktemp("services")
    return lambda *arguments: running(folder, *arguments)


@pytest.fixture(scope="module")
def service(serve: Callable[..., AbstractContextManager[Running]]) -> Iterator[Running]:
    """The built-in model, without a limit for requests a minute."""
    with serve("en-de", "--requests-per-minute", "0") as running:
        yield running
