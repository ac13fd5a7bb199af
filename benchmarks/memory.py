"""Does memory grow with the corpus? Prepares and trains on made-up corpora of two sizes and prints the peak of each.

    python benchmarks/memory.py [--pairs 500000 5000000] [--steps 200]

The text is made up: words of the built-in Tatoeba corpus, drawn by frequency, in sentences of its lengths, so that
vocabulary and lengths are like those of real text. Peak memory is the process's largest resident set, pages of mapped
files included (Linux and macOS). Needs about 250 bytes of disk a pair, and for 5 million pairs some 20 minutes.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from itertools import accumulate
from pathlib import Path

RECIPE = ["--recipe", "medium-corpus"]


def main() -> None:
    """Measure each size in a process of its own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--pairs", type=int, nargs="+", default=[500_000, 5_000_000])
    parser.add_argument("--steps", type=int, default=200)
    parser.add_argument("--directory", type=Path, help="Where to write; a temporary one if not given.")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=arguments.directory) as directory:
        peaks = [measure(pairs, arguments.steps, Path(directory)) for pairs in arguments.pairs]
    if len(peaks) > 1:
        print(f"largest against smallest: {peaks[-1] / peaks[0]:.3f}")


def measure(pairs: int, steps: int, directory: Path) -> float:
    """Peak memory in MiB of `transduce train` on a corpus of so many pairs."""
    files = [directory / f"{pairs}.{side}" for side in ("en", "de")]
    for path in files:
        write_text(path, pairs)
    model = directory / f"model-{pairs}"
    command = [sys.executable, "-m", "transduce", "train", *map(str, files), "-o", str(model), *RECIPE]
    started = time.perf_counter()
    process = subprocess.Popen([*command, "--steps", str(steps)], stdout=subprocess.DEVNULL)
    _, status, usage = os.wait4(process.pid, 0)
    if status:
        sys.exit(f"training failed: {os.waitstatus_to_exitcode(status)}")
    peak = usage.ru_maxrss / (2**20 if sys.platform == "darwin" else 2**10)
    prepared = json.loads((model / "run" / "prepared" / "prepared.json").read_text(encoding="utf-8"))
    seconds = time.perf_counter() - started
    print(
        f"{pairs:>10,} pairs ({prepared['counts']['kept']:,} kept): peak {peak:,.0f} MiB, {seconds:,.0f} s", flush=True
    )
    for path in files:
        path.unlink()
    return peak


def write_text(path: Path, lines: int) -> None:
    """Sentences of words drawn by frequency; each file has its own order, and the same one each time."""
    from transduce.data.builtin import builtin_corpus

    words: Counter[str] = Counter()
    lengths: list[int] = []
    for pair in builtin_corpus("tatoeba-en-de").pairs():
        sentence = (pair.source if path.suffix == ".en" else pair.target).split()
        words.update(sentence)
        lengths.append(max(3, len(sentence)))
    generator = random.Random(path.name)
    choices, weights = list(words), list(accumulate(words.values()))
    with path.open("w", encoding="utf-8") as file:
        for start in range(0, lines, 10_000):
            counts = generator.choices(lengths, k=min(10_000, lines - start))
            drawn = iter(generator.choices(choices, cum_weights=weights, k=sum(counts)))
            file.writelines(" ".join(next(drawn) for _ in range(count)) + "\n" for count in counts)


if __name__ == "__main__":
    main()
