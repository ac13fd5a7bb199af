"""Bulk translation by Ray, and by plain processes, against one process with all cores, on the same lines.

Lines are sources of the built-in Tatoeba training set, no two alike, in an order of their own, with blank ones among
them; the model is the built-in en-de. Each contestant is a process of its own that reads a file and writes a file:

    Translator    Translator.load("en-de").translate(lines): CTranslate2 with a thread a core
    one process   transduce translate -i big.txt -o out/
    processes     transduce translate -i big.txt -o out/ --workers N
    Ray           transduce translate -i big.txt -o out/ --engine-cluster ray --workers N, Ray started on this machine

They take turns. Printed: seconds from start to end, with all that has to be loaded and started; lines a second, and how
many times the Translator's that is; then the same without the start, from the first finished block to the last. What is
written into a folder must be the same, byte by byte, whoever makes it, or it says so and fails. The Translator puts
other lines together, which decides between translations that are all but equally likely: how often is printed.

    python benchmarks/bulk.py [--lines 100000] [--beam 1] [--workers 2] [--rounds 1] [--json FILE]
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import random
import statistics
import subprocess
import sys
import tempfile
import time
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
    line = [sys.executable, __file__, "--contend", name, "--directory", str(directory)]
    line += ["--beam", str(beam), "--workers", str(workers)]
    answer = subprocess.run(line, stdout=subprocess.PIPE, text=True, check=True).stdout
    return {"seconds": time.monotonic() - started, "rate": float(answer)}


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
    print((all_done - done) / (last - first))
    summary.path.rename(directory / "translations.txt")


def print_table(found: dict[str, list[dict[str, float]]], lines: int) -> None:
    """A row a contestant; ratios are the median over the rounds."""
    print(f"{'':14}{'seconds':>9}{'lines/s':>9}{'ratio':>7}   {'after the start:':>16}{'lines/s':>9}{'ratio':>7}")
    for name, rounds in found.items():
        seconds = statistics.median(each["seconds"] for each in rounds)
        rate = statistics.median(each["rate"] for each in rounds)
        row = f"{name:14}{seconds:9.1f}{lines / seconds:9,.0f}"
        others = found.get("Translator")
        if others is None:
            print(f"{row}{rate:35,.0f}")
            continue
        whole = statistics.median(b["seconds"] / a["seconds"] for a, b in zip(rounds, others, strict=True))
        after = statistics.median(a["rate"] / b["rate"] for a, b in zip(rounds, others, strict=True))
        print(f"{row}{whole:7.2f}   {'':16}{rate:9,.0f}{after:7.2f}")


if __name__ == "__main__":
    main()
