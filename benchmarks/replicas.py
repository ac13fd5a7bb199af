"""What a second replica of `transduce serve` gives, and what is lost when one of two stops or dies: real processes.

Clients send one sentence of the Tatoeba test set after the other to POST /translate and wait for every answer. Between
them and the replicas stands a balancer: it asks replicas in turn, leaves out who says at /health/ready not to be asked,
and asks the next one where a connection breaks. Replicas have a worker each, as if they had a core each. In the middle
of a run one is told to stop (SIGTERM), and in another one is killed (SIGKILL). A request has failed if it was not
answered with 200; translations are compared with those of `transduce translate`.

With nginx on the PATH (or --nginx) the same is done behind nginx and deploy/nginx.conf. All of it is on 127.0.0.1, and
ends by itself after so many seconds or requests a run.

    python benchmarks/replicas.py [--seconds 10] [--clients 16] [--requests 20000] [--rounds 3] [--nginx nginx] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import AsyncExitStack, ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.commit import commit
from serving import MODEL, Connection, Load, by_command, started, unseen_sentences

SENTENCES = 300
"""That are asked for, in turn."""
OPTIONS = ("--workers", "1", "--drain", "1")
LOOK_EVERY = 0.1
"""Seconds between questions whether a replica is ready; less than it goes on when told to stop."""
LOST = (OSError, asyncio.IncompleteReadError)
"""What a broken connection looks like."""
CONFIGURATION = Path(__file__).parents[1] / "deploy" / "nginx.conf"


@dataclass
class Balanced(Load):
    """What clients saw behind a balancer."""

    retried: int = 0
    asked: dict[int, int] = field(default_factory=dict)

    def figures(self) -> dict[str, Any]:
        """What is reported."""
        return super().figures() | {
            "answered": len(self.times),
            "retried": self.retried,
            "shares": [*self.asked.values()],
        }


class Balancer:
    """Replicas in turn: first those that are ready, the others as a last resort."""

    def __init__(self, ports: list[int]) -> None:
        self._ports, self._ready, self._turn = ports, set(ports), 0

    def order(self) -> list[int]:
        """Whom to ask first, second and so on."""
        self._turn += 1
        first = self._turn % len(self._ports)
        turn = self._ports[first:] + self._ports[:first]
        return sorted(turn, key=lambda port: port not in self._ready)

    def lost(self, port: int) -> None:
        """A connection broke: not ready until it says that it is."""
        self._ready.discard(port)

    async def watch(self) -> None:
        """Ask again and again who is ready."""
        while True:
            for port in self._ports:
                try:
                    async with Connection(port) as connection:
                        status, _ = await connection.get("/health/ready")
                except LOST:
                    status = 503
                (self._ready.add if status == 200 else self._ready.discard)(port)
            await asyncio.sleep(LOOK_EVERY)


class Client:
    """One connection to each replica, kept while the replica keeps it."""

    def __init__(self, balancer: Balancer, found: Balanced) -> None:
        self._balancer, self._found = balancer, found
        self._kept: dict[int, tuple[AsyncExitStack, Connection]] = {}

    async def ask(self, text: str) -> tuple[int, Any]:
        """Status and answer of the first replica that gives one."""
        for port in self._balancer.order():
            try:
                status, answer = await self._ask(port, text)
            except LOST:
                self._balancer.lost(port)
                self._found.retried += 1
                await self._drop(port)
                continue
            self._found.asked[port] = self._found.asked.get(port, 0) + 1
            return status, answer
        return 503, None

    async def close(self) -> None:
        """Give up all connections."""
        for port in list(self._kept):
            await self._drop(port)

    async def _ask(self, port: int, text: str) -> tuple[int, Any]:
        if port not in self._kept:
            stack = AsyncExitStack()
            self._kept[port] = stack, await stack.enter_async_context(Connection(port))
        connection = self._kept[port][1]
        answer = await connection.post({"q": text, "source": "en", "target": "de"})
        if connection.ends:
            await self._drop(port)
        return answer

    async def _drop(self, port: int) -> None:
        if port in self._kept:
            await self._kept.pop(port)[0].aclose()


@dataclass(frozen=True)
class Bounds:
    """How much is asked in one run, and how often one replica and two take turns."""

    seconds: float
    clients: int
    requests: int
    rounds: int = 1


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=10, help="of each run")
    parser.add_argument("--clients", type=int, default=16)
    parser.add_argument("--requests", type=int, default=20_000, help="of each run, at most")
    parser.add_argument("--rounds", type=int, default=3, help="turns of one replica and two; the median is reported")
    parser.add_argument("--nginx", default=shutil.which("nginx"), help="the program; else that on the PATH, if any")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sentences = unseen_sentences()[:SENTENCES]
    expected = dict(zip(sentences, by_command(sentences), strict=True))
    bounds = Bounds(arguments.seconds, arguments.clients, arguments.requests, arguments.rounds)
    report: dict[str, Any] = {"round robin": measure(expected, bounds, None)}
    if arguments.nginx:
        report["nginx"] = measure(expected, bounds, arguments.nginx)
    report["commit"] = commit()
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    for balancer in ("round robin", "nginx"):
        for name, found in report.get(balancer, {}).items():
            print(_row(f"{balancer}, {name}", found))
    if not arguments.nginx:
        print("nginx: not on the PATH, not measured")
    print(f"{bounds.clients} clients, {bounds.seconds:g} seconds a run, commit {report['commit']}")


def measure(expected: dict[str, str], bounds: Bounds, nginx: str | None) -> dict[str, Any]:
    """All that is reported of a balancer: our own, or nginx."""
    report: dict[str, Any] = {}

    def run(name: str, ports: list[int], midway: Callable[[], None] = lambda: None) -> dict[str, Any]:
        with ExitStack() as stack:
            asked = [stack.enter_context(behind_nginx(nginx, ports))] if nginx else ports
            found = asyncio.run(load(asked, bounds, expected, midway)).figures()
        print(_row(name, found), file=sys.stderr)
        return found

    with ExitStack() as stack:
        process, first = stack.enter_context(started(MODEL, *OPTIONS))
        stopped, second = stack.enter_context(started(MODEL, *OPTIONS))
        warm = Bounds(min(2.0, bounds.seconds), bounds.clients, bounds.requests)
        asyncio.run(load([first, second], warm, expected))  # nothing is measured cold
        turns = [(run("one replica", [first]), run("two replicas", [first, second])) for _ in range(bounds.rounds)]
        for name, found in zip(("one replica", "two replicas"), zip(*turns, strict=True), strict=True):
            report[name] = sorted(found, key=lambda each: each["requests_per_second"])[len(found) // 2]
        if sys.platform != "win32":
            name = "one of two told to stop"
            report[name] = run(name, [first, second], lambda: stopped.send_signal(signal.SIGTERM))
            report[name]["exit_code"] = stopped.wait(60)
        killed, third = stack.enter_context(started(MODEL, *OPTIONS))
        name = "one of two killed"
        report[name] = run(name, [first, third], killed.kill)
        report[name]["exit_code"] = killed.wait(60)
        assert process.poll() is None, "the replica that nobody touched is there"
    return report


async def load(
    ports: list[int], bounds: Bounds, expected: dict[str, str], midway: Callable[[], None] = lambda: None
) -> Balanced:
    """So many clients for so long; half way through something happens."""
    found, balancer, sentences = Balanced(bounds.seconds), Balancer(ports), list(expected)
    begun = time.perf_counter()
    end, left = begun + bounds.seconds, bounds.requests

    async def client(number: int) -> None:
        nonlocal left
        place, asking = number * 37, Client(balancer, found)
        while (sent := time.perf_counter()) < end and left:
            left -= 1
            place += 1
            text = sentences[place % len(sentences)]
            status, answer = await asking.ask(text)
            if status != 200:
                found.failures += 1
                continue
            found.different += answer["translatedText"] != expected[text]
            found.times.append(time.perf_counter() - sent)
        await asking.close()

    async def happening() -> None:
        while time.perf_counter() < begun + bounds.seconds / 2 and left > bounds.requests / 2:
            await asyncio.sleep(0.01)
        midway()

    watching = asyncio.ensure_future(balancer.watch())
    try:
        # What has been sent is waited for, but not for ever.
        await asyncio.wait_for(asyncio.gather(happening(), *map(client, range(bounds.clients))), bounds.seconds + 60)
    finally:
        watching.cancel()
    found.seconds = time.perf_counter() - begun
    return found


@contextmanager
def behind_nginx(program: str, ports: list[int]) -> Iterator[int]:
    """Nginx before some replicas, with the configuration that we ship; its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    text = CONFIGURATION.read_text(encoding="utf-8").replace("127.0.0.1:8080", f"127.0.0.1:{port}")
    for shipped, real in zip((5001, 5002), (ports * 2)[:2], strict=True):
        text = text.replace(f"server 127.0.0.1:{shipped}", f"server 127.0.0.1:{real}")
    with tempfile.TemporaryDirectory() as folder:
        kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
        here = "".join(f"\n    {kind}_temp_path {folder}/{kind};" for kind in kinds)  # else where only root may write
        Path(folder, "nginx.conf").write_text(text.replace("http {", f"http {{{here}"), encoding="utf-8")
        command = [program, "-p", folder, "-c", "nginx.conf", "-g", "daemon off;"]
        process = subprocess.Popen(command, stderr=subprocess.DEVNULL)  # it names every request that it sends again
        try:
            _wait_for(port, process)
            yield port
        finally:
            process.terminate()
            process.wait(30)


def _wait_for(port: int, process: subprocess.Popen[bytes]) -> None:
    for _ in range(100):
        try:
            socket.create_connection(("127.0.0.1", port), timeout=5).close()
            return
        except OSError:
            if process.poll() is not None:
                break
            time.sleep(0.05)
    sys.exit(f"nginx did not start. Try: nginx -t -c {CONFIGURATION}")


def _row(name: str, found: dict[str, Any]) -> str:
    times = "   ".join(f"{key} {found[key]:6.1f} ms" for key in ("p50", "p99"))
    counts = f"failed {found['failures']}, retried {found['retried']}, unlike the command's {found['different']}"
    asked = found["answered"] + found["failures"]
    return f"{name:36} {found['requests_per_second']:7.1f} a second   {times}   of {asked}: {counts}"


if __name__ == "__main__":
    main()
