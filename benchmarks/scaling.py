"""From which size on do more processes pay, or a cluster? Bulk translation and preparation, small and large, each way.

    python benchmarks/scaling.py [--lines 1000 10000 100000] [--pairs 100000 500000 1000000] [--plot scaling.png]
                                 [--json scaling.json]

Translation is of benchmarks/bulk.py's lines with the built-in en-de as it is, from the start of a command to its end;
what one process writes into a folder and what Ray does must be the same, byte by byte, or it says so and fails.
Preparation reads Tatoeba pairs, each copy with other numbers in front, so that none are alike. Ways take turns; Ray is
started on this machine each time. For each way a line is fitted through its times: what starting costs, and what each
item costs. From that, for translation: the size from which on a second machine of the same kind would pay, if Ray gives
it half of the work. That is arithmetic; there is one machine here. Let nothing else run meanwhile.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

import bulk
from results.commit import commit

Times = dict[str, dict[int, float]]
"""Seconds by way and size."""
TRANSLATING = ("Translator", "one process", "Ray")
PREPARING = ("one process", "processes", "Ray")
_written: dict[int, bytes] = {}
"""What was first written of so many lines, for the others to be compared with."""


def main() -> None:
    """Measure, print, draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lines", type=int, nargs="*", default=[1_000, 10_000, 100_000])
    parser.add_argument("--pairs", type=int, nargs="*", default=[100_000, 500_000, 1_000_000])
    parser.add_argument("--workers", type=int, default=os.cpu_count())
    parser.add_argument("--beam", type=int, default=4)
    parser.add_argument("--plot", type=Path, metavar="FILE.png", help="draw the times, with matplotlib")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the numbers")
    parser.add_argument("--prepare", choices=PREPARING, help=argparse.SUPPRESS)
    parser.add_argument("--directory", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.prepare:
        prepare(options.prepare, options.directory, options.workers)
        return
    print(f"{options.workers} cores, commit {commit()}, {os.getloadavg()[0]:.1f} processes at work before this")
    found: dict[str, Times] = {}
    with tempfile.TemporaryDirectory() as folder:
        if options.lines:
            title = f"lines translated, beam {options.beam}"
            found[title] = measured(TRANSLATING, options.lines, lambda *each: translating(*each, options), Path(folder))
            report(title, found[title])
            report_second_machine(found[title])
        if options.pairs:
            title = "pairs prepared"
            found[title] = measured(PREPARING, options.pairs, lambda *each: preparing(*each, options), Path(folder))
            report(title, found[title])
    if options.json:
        options.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")
    if options.plot:
        draw(found, options.plot)


def measured(
    ways: tuple[str, ...], sizes: list[int], seconds: Callable[[str, int, Path], float], folder: Path
) -> Times:
    """Seconds of every way at every size."""
    times: Times = {way: {} for way in ways}
    for size in sizes:
        for way in ways:
            print(f"\r{size:,}: {way:12}", end="", file=sys.stderr, flush=True)
            with tempfile.TemporaryDirectory(dir=folder) as place:
                times[way][size] = seconds(way, size, Path(place))
    print("\r" + 30 * " " + "\r", end="", file=sys.stderr)
    return times


def translating(way: str, size: int, folder: Path, options: argparse.Namespace) -> float:
    """Seconds to translate so many lines."""
    bulk.write_lines(folder, size)
    seconds = bulk.measured(way, folder, options.beam, options.workers)["seconds"]
    if way != "Translator":  # which puts other lines together, see bulk.py
        written = (folder / "translations.txt").read_bytes()
        if _written.setdefault(size, written) != written or written.count(b"\n") != size:
            sys.exit(f"{size:,} lines: what {way} has written is not the same.")
    return seconds


def preparing(way: str, size: int, folder: Path, options: argparse.Namespace) -> float:
    """Seconds to prepare so many pairs, in a process of its own."""
    write_pairs(folder, size)
    line = [sys.executable, __file__, "--prepare", way, "--directory", str(folder), "--workers", str(options.workers)]
    started = time.monotonic()
    code = os.spawnv(os.P_WAIT, sys.executable, line)
    if code:
        sys.exit(f"{way} ended with {code}.")
    return time.monotonic() - started


def write_pairs(folder: Path, count: int) -> None:
    """Two files of so many lines, no two pairs alike."""
    from transduce.data.builtin import builtin_corpus

    pairs = list(builtin_corpus(bulk.CORPUS).pairs())
    with (folder / "big.en").open("w", encoding="utf-8") as en, (folder / "big.de").open("w", encoding="utf-8") as de:
        for number in range(count):
            pair, copy = pairs[number % len(pairs)], number // len(pairs)
            mark = f"{copy}: " if copy else ""
            en.write(f"{mark}{pair.source}\n")
            de.write(f"{mark}{pair.target}\n")


def prepare(way: str, folder: Path, workers: int) -> None:
    """Prepare the files of a folder; processes even where the product would not use them."""
    from transduce.data import prepare as preparing
    from transduce.data.corpus import Corpus
    from transduce.data.encoding import Hands
    from transduce.data.prepare import Preparation

    preparing.MANY_PAIRS = 0
    hands = {"one process": Hands(1), "processes": Hands(workers), "Ray": Hands(cluster="ray")}[way]
    preparation = Preparation([Corpus(folder / "big.en", folder / "big.de")], vocab_size=6000, variants=0.25)
    preparing.prepare(preparation, folder / "prepared", hands=hands)


def report(title: str, times: Times) -> None:
    """A row a way, and what Ray is worth beside each."""
    sizes = list(next(iter(times.values())))
    print(f"\n{title}\n{'seconds for':14}" + "".join(f"{size:>12,}" for size in sizes) + f"{'start':>9}{'µs each':>9}")
    lines = {way: fitted(of_way) for way, of_way in times.items()}
    for way, of_way in times.items():
        start, each = lines[way]
        row = "".join(f"{of_way[size]:12.1f}" for size in sizes)
        print(f"{way:14}{row}{start:9.1f}{1e6 * each:9.1f}")
    last = sizes[-1]
    for way in times:
        if way != "Ray":
            print(f"Ray against {way}: {times[way][last] / times['Ray'][last]:.2f} of its speed at {last:,}")


def report_second_machine(times: Times) -> None:
    """From how many items on it would pay, if it did half of them."""
    (start, each), (ray_start, ray_each) = fitted(times["Translator"]), fitted(times["Ray"])
    gained = each - ray_each / 2
    if gained > 0:
        print(f"A second machine would pay from about {max(0.0, ray_start - start) / gained:,.0f} lines on.")
    else:
        print("A second machine would not pay.")


def fitted(times: dict[int, float]) -> tuple[float, float]:
    """Seconds at the start and of each item: the line whose errors are smallest, as shares of what was measured."""
    sizes, seconds = np.array(list(times)), np.array(list(times.values()))
    if len(times) == 1:
        return 0.0, float(seconds[0] / sizes[0])
    each, start = np.polyfit(sizes, seconds, 1, w=1 / seconds)
    return float(start), float(each)


def draw(found: dict[str, Times], path: Path) -> None:
    """Throughput over size."""
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, len(found), figsize=(5 * len(found), 3.4), squeeze=False)
    for place, (title, times) in zip(axes[0], found.items(), strict=True):
        for way, of_way in times.items():
            place.plot(list(of_way), [size / seconds for size, seconds in of_way.items()], marker="o", label=way)
        place.set(xscale="log", xlabel=title, ylabel="a second, start included", ylim=(0, None))
        place.grid(alpha=0.3)
        place.legend(frameon=False)
    figure.tight_layout()
    figure.savefig(path, dpi=110)


if __name__ == "__main__":
    main()
