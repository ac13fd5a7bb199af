"""How many requests `transduce serve` answers, how soon, and what batching gives: real servers, real sockets.

Clients send one sentence of the Tatoeba test set after the other to POST /translate, each on a connection of its own,
and wait for every answer. The same is sent to a server that decodes one sentence at a time, in turns with the first.
Every translation is compared with that of `transduce translate`. Then more is asked than may wait, and the refusals are
timed. The clients run on the same machine as the server and take their share of it.

With --size base the model is an untrained one of the paper's base size, which writes as many tokens as it reads: what
it says means nothing, but it takes the time that such a model takes.

    python benchmarks/serving.py [--seconds 30] [--clients 1 8 32 128] [--rounds 5] [--size built-in|base] [--json]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import random
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from results.commit import commit

MODEL, CORPUS = "en-de", "tatoeba-en-de"
ONE_AT_A_TIME = ("--workers", "1", "--batch-tokens", "1")
COMPARED = 32
"""Clients at which batching is compared with its absence."""


@dataclass
class Load:
    """What some clients saw."""

    seconds: float
    times: list[float] = field(default_factory=list)
    failures: int = 0
    different: int = 0

    @property
    def rate(self) -> float:
        """Requests answered a second."""
        return len(self.times) / self.seconds

    def percentile(self, share: float) -> float:
        """Seconds within which this share of requests was answered."""
        ordered = sorted(self.times)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else float("nan")

    def figures(self) -> dict[str, Any]:
        """What is reported."""
        shares = {name: 1e3 * self.percentile(share) for name, share in (("p50", 0.5), ("p95", 0.95), ("p99", 0.99))}
        return {"requests_per_second": self.rate, **shares, "failures": self.failures, "different": self.different}


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=30)
    parser.add_argument("--clients", type=int, nargs="+", default=[1, 8, 32, 128])
    parser.add_argument("--rounds", type=int, default=5, help="turns of the comparison with one at a time")
    parser.add_argument("--size", choices=["built-in", "base"], default="built-in")
    parser.add_argument("--json", action="store_true")
    arguments = parser.parse_args()
    sentences = unseen_sentences()
    with tempfile.TemporaryDirectory() as folder:
        if arguments.size == "base":
            model, expected = untrained_base(Path(folder) / "base"), dict.fromkeys(sentences, "")
        else:
            model, expected = MODEL, dict(zip(sentences, by_command(sentences), strict=True))
        report = measure(model, expected, arguments.clients, arguments.seconds, arguments.rounds)
    report["commit"], report["size"] = commit(), arguments.size
    if arguments.json:
        print(json.dumps(report, indent=2))
        return
    for clients, found in report["clients"].items():
        print(_row(f"{clients} clients", found))
    ratios = ", ".join(f"{ratio:.2f}" for ratio in report["ratios"])
    print(f"\nbatching, {COMPARED} clients: {report['batching']:.2f} times one at a time, of {ratios} (asked: 3)")
    refusals = report["overload"]
    print(
        f"overload: {refusals['refused']} of {refusals['all']} refused, half within {refusals['p50']:.1f} ms, "
        f"99 % within {refusals['p99']:.1f} ms, the slowest {refusals['slowest']:.1f} ms (asked: 100)"
    )
    print(f"model {report['size']}, commit {report['commit']}")


def measure(model: str, expected: dict[str, str], clients: list[int], seconds: float, rounds: int) -> dict[str, Any]:
    """All that is reported of a model."""
    report: dict[str, Any] = {"clients": {}, "ratios": []}
    with serve(model) as batched, serve(model, *ONE_AT_A_TIME) as single:
        for port in (batched, single):
            asyncio.run(load(port, 8, 3, expected))  # nothing is measured cold
        for count in clients:
            found = asyncio.run(load(batched, count, seconds, expected)).figures()
            report["clients"][count] = found
            print(_row(f"{count} clients", found), file=sys.stderr)
        for number in range(rounds):
            ports = [batched, single] if number % 2 else [single, batched]
            rates = {port: asyncio.run(load(port, COMPARED, seconds / 6, expected)).rate for port in ports}
            report["ratios"].append(rates[batched] / rates[single])
            print(
                f"{COMPARED} clients: {rates[batched]:.0f} a second, one at a time {rates[single]:.0f}", file=sys.stderr
            )
        report["batching"] = statistics.median(report["ratios"])
    with serve(model, "--max-waiting", "40") as small:
        asyncio.run(load(small, 8, 3, expected))
        report["overload"] = asyncio.run(overload(small, 64, list(expected), seconds / 3))
    return report


def untrained_base(path: Path) -> str:
    """A model of the paper's base size with random weights, compiled, that ends each sentence at its length limit."""
    from dataclasses import asdict

    import torch

    from transduce.bundle import Bundle, BundleConfig, find_model
    from transduce.interop.ctranslate2 import compile_model
    from transduce.model import Transformer, TransformerConfig

    vocabularies = Bundle.open(find_model(MODEL)).vocabularies()
    torch.manual_seed(0)
    model = Transformer(TransformerConfig.base(vocabularies.source.size))
    config = BundleConfig(
        architecture=asdict(model.config),
        source_language="en",
        target_language="de",
        decoding={"max_length_ratio": 1.0, "max_length_extra": 0},
    )
    weights = {name: value.detach() for name, value in model.named_parameters()}
    Bundle.write(path, config, weights, vocabularies, {}, "")
    compile_model(model, vocabularies, path / "ctranslate2")
    return str(path)


async def load(port: int, clients: int, seconds: float, expected: dict[str, str]) -> Load:
    """So many clients for so long."""
    found = Load(seconds)
    sentences, end = list(expected), time.perf_counter() + seconds

    async def client(number: int) -> None:
        place = number * 37
        async with Connection(port) as connection:
            while (started := time.perf_counter()) < end:
                place += 1
                text = sentences[place % len(sentences)]
                status, answer = await connection.post({"q": text, "source": "en", "target": "de"})
                if status != 200:
                    found.failures += 1
                    continue
                found.different += bool(expected[text]) and answer["translatedText"] != expected[text]
                if (now := time.perf_counter()) <= end:
                    found.times.append(now - started)

    await asyncio.gather(*map(client, range(clients)))
    return found


async def overload(port: int, clients: int, sentences: list[str], seconds: float) -> dict[str, Any]:
    """Ask for more than may wait: how soon refusals come."""
    refused: list[float] = []
    asked, end = 0, time.perf_counter() + seconds

    async def client(number: int) -> None:
        nonlocal asked
        patience = random.Random(number)
        await asyncio.sleep(patience.uniform(0, 0.5))  # they do not know of each other
        async with Connection(port) as connection:
            while (started := time.perf_counter()) < end:
                status, _ = await connection.post(
                    {"q": sentences[number : number + 20], "source": "en", "target": "de"}
                )
                asked += 1
                if status == 503:
                    refused.append(time.perf_counter() - started)
                    await asyncio.sleep(patience.uniform(0.2, 0.8))  # less than the Retry-After that it is told
                elif status != 200:
                    sys.exit(f"overload was answered with {status}")

    await asyncio.gather(*map(client, range(clients)))
    if not refused:
        sys.exit("nothing was refused: this was no overload")
    times = sorted(1e3 * each for each in refused)
    figures = {"p50": times[len(times) // 2], "p99": times[int(0.99 * (len(times) - 1))], "slowest": times[-1]}
    return {"all": asked, "refused": len(times), **figures}


class Connection:
    """An HTTP connection that is kept open; as little of HTTP as this takes, so that the server is what is measured."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.ends = False
        """Whether the other side keeps it no longer."""

    async def __aenter__(self) -> Connection:
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.close()

    async def post(self, values: dict[str, Any]) -> tuple[int, Any]:
        """Status and answer of a request for a translation."""
        return await self._asked("POST /translate", json.dumps(values).encode())

    async def get(self, path: str) -> tuple[int, Any]:
        """Status and answer of another request."""
        return await self._asked(f"GET {path}", b"")

    async def _asked(self, what: str, body: bytes) -> tuple[int, Any]:
        lines = (f"{what} HTTP/1.1", "host: localhost", f"content-length: {len(body)}", "", "")
        self._writer.write("\r\n".join(lines).encode() + body)
        headers = await self._reader.readuntil(b"\r\n\r\n")
        self.ends = b"connection: close" in headers.lower()
        length = re.search(rb"(?i)content-length: (\d+)", headers)
        if length is None:
            sys.exit("an answer without a length")
        return int(headers[9:12]), json.loads(await self._reader.readexactly(int(length.group(1))))


@contextmanager
def serve(model: str, *options: str) -> Iterator[int]:
    """A server of its own process; its port."""
    with started(model, *options) as (_, port):
        yield port


@contextmanager
def started(model: str, *options: str) -> Iterator[tuple[subprocess.Popen[str], int]]:
    """A server of its own process, and its port."""
    command = [
        sys.executable,
        "-m",
        "transduce",
        "serve",
        model,
        "--port",
        "0",
        "--requests-per-minute",
        "0",
        "--quiet",
    ]
    with subprocess.Popen([*command, *options], stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            for line in process.stderr:
                if found := re.search(r"http://[^ ]*:(\d+)", line):
                    yield process, int(found.group(1))
                    break
            else:
                sys.exit("the server did not start")
        finally:
            process.terminate()


def unseen_sentences() -> list[str]:
    """What is asked for."""
    from transduce.data.builtin import builtin_corpus

    return list(dict.fromkeys(source for source, _ in builtin_corpus(CORPUS, "test").pairs()))


def by_command(sentences: list[str]) -> list[str]:
    """What `transduce translate` makes of them."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "sentences.txt"
        file.write_text("\n".join(sentences) + "\n", encoding="utf-8")
        command = [sys.executable, "-m", "transduce", "translate", "-m", MODEL, "-i", str(file)]
        done = subprocess.run(command, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.splitlines()


def _row(name: str, found: dict[str, Any]) -> str:
    times = "".join(f"{key} {found[key]:7.1f} ms   " for key in ("p50", "p95", "p99"))
    rest = f"failed {found['failures']}   unlike the command's {found['different']}"
    return f"{name:14}{found['requests_per_second']:8.1f} a second   {times}{rest}"


if __name__ == "__main__":
    main()
