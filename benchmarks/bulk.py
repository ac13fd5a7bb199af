"""Bulk translation by Ray, and by plain processes, against one process with all cores, on the same lines.

Lines are sources of the built-in Tatoeba training set, no two alike, in an order of their own, with blank ones among
them; the model is the built-in en-de. Each contestant is a process of its own that reads a file and writes a file:

    Translator    Translator.load("en-de").translate(lines): CTranslate2 with a thread a core
    one process   transduce translate -i big.txt -o out/
    processes     transduce translate -i big.txt -o out/ --workers N
    Ray           transduce translate -i big.txt -o out/ --engine-cluster ray --workers N, Ray started on this machine

They take turns. Printed: seconds from start to end, with all that has to be loaded and started; lines a second, and how
many times the Translator's that is; then the same without the start, from the first finished block to the last; and on
Linux, the CPU seconds of all processes together, which say more where the machine has other work to do as well. What is
written into a folder must be the same, byte by byte, whoever makes it, or it says so and fails. The Translator puts
other lines together, which decides between translations that are all but equally likely: how often is printed.

    python benchmarks/bulk.py [--lines 100000] [--beam 1] [--workers 2] [--rounds 1] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import math
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from results.commit import commit

MODEL, CORPUS = "en-de", "tatoeba-en-de"
CONTESTANTS = ("Translator", "one process", "processes", "Ray")
BLANK_EVERY = 997


def main() -> None:
    """Let the contestants take turns, compare what they wrote, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, default=100_000)
    parser.add_argument("--beam", type=int, default=1)
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--contestants", nargs="+", choices=CONTESTANTS, default=CONTESTANTS)
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    parser.add_argument("--contend", choices=CONTESTANTS, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.contend:
        contend(arguments.contend, arguments.directory, arguments.beam, arguments.workers)
        return
    found: dict[str, list[dict[str, float]]] = {name: [] for name in arguments.contestants}
    outputs: dict[str, bytes] = {}
    with tempfile.TemporaryDirectory() as folder:
        text = write_lines(Path(folder), arguments.lines)
        for number in range(arguments.rounds):
            for name in [*arguments.contestants[number % 2 :], *arguments.contestants[: number % 2]]:
                print(f"\rround {number + 1} of {arguments.rounds}: {name:12}", end="", file=sys.stderr, flush=True)
                directory = Path(folder) / f"{number}-{name.replace(' ', '-')}"
                directory.mkdir()
                (directory / "big.txt").symlink_to(text)
                found[name].append(measured(name, directory, arguments.beam, arguments.workers))
                outputs[name] = (directory / "translations.txt").read_bytes()
    print(
        f"\r{arguments.lines:,} lines, model {MODEL}, beam {arguments.beam}, {arguments.workers} workers, "
        f"{os.cpu_count()} cores, {platform.machine()}, commit {commit()}"
    )
    print_table(found, arguments.lines)
    plain = outputs.pop("Translator", b"").split(b"\n")
    same = len(set(outputs.values())) == 1 and all(each.count(b"\n") == arguments.lines for each in outputs.values())
    print(f"{', '.join(outputs)}: {'the same, none missing' if same else 'THEY DIFFER'}.")
    for name, output in outputs.items():
        differ = sum(one != other for one, other in zip(plain, output.split(b"\n"), strict=False))
        print(f"{name}: {differ:,} lines are not the Translator's.")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    sys.exit(not same)


def write_lines(folder: Path, count: int) -> Path:
    """A file of so many lines."""
    from transduce.data.builtin import builtin_corpus

    lines = sorted({pair.source for pair in builtin_corpus(CORPUS).pairs()})
    random.Random(0).shuffle(lines)
    if count > len(lines):  # more than there are: again, each with another beginning
        lines += [f"{number}: {line}" for number, line in enumerate(lines * (count // len(lines)), start=1)]
    chosen = ("" if number % BLANK_EVERY == 0 else line for number, line in enumerate(lines[:count], start=1))
    path = folder / "big.txt"
    path.write_text("".join(f"{line}\n" for line in chosen), encoding="utf-8")
    return path


def measured(name: str, directory: Path, beam: int, workers: int) -> dict[str, float]:
    """Seconds from start to end, and lines a second without the start."""
    started = time.monotonic()
    spent: dict[int, float] = {}
    line = [sys.executable, __file__, "--contend", name, "--directory", str(directory)]
    line += ["--beam", str(beam), "--workers", str(workers)]
    with subprocess.Popen(line, stdout=subprocess.PIPE, text=True) as process:
        while process.poll() is None:
            spent |= cpu_of_descendants(process.pid)
            time.sleep(0.5)
        seconds = time.monotonic() - started
        assert process.stdout is not None
        answer = process.stdout.read()
    if process.returncode:
        sys.exit(f"{name} ended with {process.returncode}.")
    return {"seconds": seconds, "rate": float(answer), "cpu": sum(spent.values())}


def cpu_of_descendants(ancestor: int) -> dict[int, float]:
    """CPU seconds so far of a process and of all that come from it, by their ids; nothing where there is no /proc."""
    parents, spent = {}, {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        try:
            values = path.read_text().rpartition(")")[2].split()
        except OSError:  # it has just ended
            continue
        pid = int(path.parent.name)
        parents[pid], spent[pid] = int(values[1]), (int(values[11]) + int(values[12])) / os.sysconf("SC_CLK_TCK")

    def descends(pid: int) -> bool:
        while pid not in (ancestor, 0):
            pid = parents.get(pid, 0)
        return pid == ancestor

    return {pid: seconds for pid, seconds in spent.items() if descends(pid)}


def contend(name: str, directory: Path, beam: int, workers: int | None) -> None:
    """Translate big.txt of a directory to translations.txt; print lines a second without the start."""
    from transduce.bulk import BulkTranslation
    from transduce.bulk.records import records_of
    from transduce.bundle import Bundle, find_model
    from transduce.data.corpus import read_lines
    from transduce.translator import Translator

    path = directory / "big.txt"
    if name == "Translator":
        lines, translator = list(read_lines(path)), Translator.load(MODEL)
        started = time.monotonic()
        texts = [each.text for each in translator.translate(lines, beam=beam)]
        print(len(lines) / (time.monotonic() - started))
        (directory / "translations.txt").write_text("".join(f"{text}\n" for text in texts), encoding="utf-8")
        return
    seen: list[tuple[float, int]] = []
    bulk = BulkTranslation(
        input=path, records=records_of(path), output=directory / "out", bundle=Bundle.open(find_model(MODEL)), beam=beam
    )
    cluster: Any = "ray" if name == "Ray" else "none"
    workers = None if name == "one process" else workers
    summary = bulk.run(cluster, workers, progress=lambda done, of: seen.append((time.monotonic(), done)))
    (first, done), (last, all_done) = seen[1], seen[-1]
    print((all_done - done) / (last - first) if last > first else math.nan)  # a single block
    summary.path.rename(directory / "translations.txt")


def print_table(found: dict[str, list[dict[str, float]]], lines: int) -> None:
    """A row a contestant; ratios are the median over the rounds."""
    print(
        f"{'':14}{'seconds':>9}{'lines/s':>9}{'ratio':>7}{'started: lines/s':>19}{'ratio':>7}{'CPU s':>9}{'ratio':>7}"
    )
    others = found.get("Translator", [])
    for name, rounds in found.items():
        seconds, rate, cpu = (statistics.median(each[key] for each in rounds) for key in ("seconds", "rate", "cpu"))
        ratios = [
            statistics.median(ratio(mine, theirs) for mine, theirs in zip(rounds, others, strict=True))
            if others
            else math.nan
            for ratio in (_of("seconds"), lambda mine, theirs: mine["rate"] / theirs["rate"], _of("cpu"))
        ]
        print(
            f"{name:14}{seconds:9.1f}{lines / seconds:9,.0f}{ratios[0]:7.2f}{rate:19,.0f}{ratios[1]:7.2f}"
            f"{cpu:9.1f}{ratios[2]:7.2f}"
        )


def _of(cost: str) -> Callable[[dict[str, float], dict[str, float]], float]:
    """How many times as little one costs as the other; not a number where that was not measured."""
    return lambda mine, theirs: theirs[cost] / mine[cost] if mine[cost] else math.nan


if __name__ == "__main__":
    main()
