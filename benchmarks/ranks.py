"""What several ranks give on this machine: tokens a second of one process with all cores, and of several with one each.

    python benchmarks/ranks.py [--ranks 2] [--steps 12] [--rounds 2] [--sizes small medium base]

Trains on the built-in English-German text, the ways by turns, and prints the median time of a step, target tokens a
second, and their ratio to one process. On one machine without GPUs ranks can only lose: threads of a process share its
weights, ranks send gradients to each other. What they lose is what they cost.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from itertools import pairwise
from pathlib import Path

SIZES = {
    "small": ["--recipe", "small-corpus", "training.batch_tokens=4096", "training.optimizer=adam"],
    "medium": ["--recipe", "medium-corpus", "training.batch_tokens=4096", "training.optimizer=adam"],
    "base": ["--recipe", "paper-base", "tokenizer.vocab_size=8000", "training.batch_tokens=4096"],
}
"""A batch of the same tokens for all, and Adam, which --shard needs."""
QUIET = ["training.validate_every=1000000", "training.checkpoint_every=1000000"]
LEFT_OUT = 3
"""Steps at the start that do not count."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--steps", type=int, default=12)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small", "medium"])
    options = parser.parse_args()
    ways = {
        "one process": [],
        f"{options.ranks} ranks": ["--devices", str(options.ranks)],
        f"{options.ranks} ranks, --shard": ["--devices", str(options.ranks), "--shard"],
    }
    print("| size | way | seconds a step | tokens/s | of one process |")
    print("|---|---|---|---|---|")
    for size in options.sizes:
        seconds: dict[str, list[float]] = {way: [] for way in ways}
        tokens: list[float] = []
        for _ in range(options.rounds):
            for way, more in ways.items():
                found, counted = measured([*SIZES[size], *more], options.steps)
                seconds[way] += found
                tokens.append(counted)
        whole = statistics.median(seconds["one process"])
        for way in ways:
            step = statistics.median(seconds[way])
            print(f"| {size} | {way} | {step:.3f} | {statistics.mean(tokens) / step:,.0f} | {whole / step:.2f} |")


def measured(arguments: list[str], steps: int) -> tuple[list[float], float]:
    """The time of each step of a run, and its target tokens a step."""
    with tempfile.TemporaryDirectory() as folder:
        model = Path(folder) / "model"
        command = [sys.executable, "-m", "transduce", "train", "tatoeba-en-de", "-o", str(model), "--steps", str(steps)]
        process = subprocess.Popen(
            [*command, *arguments, *QUIET], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env=os.environ
        )
        _, said = process.communicate()
        if process.returncode:
            sys.exit(said.decode(errors="replace"))
        lines = (model / "log.jsonl").read_text(encoding="utf-8").splitlines()
    made = [event for event in map(json.loads, lines) if event["event"] == "Stepped"]
    times = [after["seconds"] - before["seconds"] for before, after in pairwise(made)]
    return times[LEFT_OUT:], statistics.mean(event["tokens"] for event in made)


if __name__ == "__main__":
    main()
