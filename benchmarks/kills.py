"""Ranks that are killed without warning under torchrun: what is lost? Nothing but the steps since the last checkpoint.

    python benchmarks/kills.py [--ranks 2] [--kills 10] [--steps 400]

Trains a toy (letters backwards, dropout on) twice: left alone, and with a rank killed (SIGKILL) at random moments, each
time another one at random; torchrun starts all of them again. Prints which steps were made twice, and whether the two
models are the same bit for bit.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

SETTINGS = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32", "model.d_ff=64", "model.dropout=0.2",
    "tokenizer.vocab_size=300", "training.batch_tokens=512", "training.checkpoint_every=20",
    "training.validate_every=100", "training.rate=0.005", "training.warmup=50",
]  # fmt: skip


def main() -> int:
    """Run both and compare; the exit code says whether they are the same."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--ranks", type=int, default=2)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--steps", type=int, default=400)
    parser.add_argument("--seed", type=int, default=1, help="of the moments and the ranks")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        write_text(place)
        whole, killed = place / "whole", place / "killed"
        print(f"{options.ranks} ranks, {options.steps} steps, undisturbed …", flush=True)
        run(place, whole, options.ranks, options.steps, 0, random.Random())
        print(f"The same, with {options.kills} kills …", flush=True)
        run(place, killed, options.ranks, options.steps, options.kills, random.Random(options.seed))
        begun = [event for event in events(killed) if event["event"] in ("Started", "Resumed")][1:]
        for event in begun:
            again = (
                f"steps {event['step'] + 1} to {event['step'] + event['repeats']} again" if event["repeats"] else "none"
            )
            print(f"  went on from step {event['step']}: {again}")
        steps = {event["step"] for event in events(killed) if event["event"] == "Stepped"}
        same = (whole / "model.safetensors").read_bytes() == (killed / "model.safetensors").read_bytes()
        twice, found = sum(event["repeats"] for event in begun), "the same bit for bit" if same else "ANOTHER"
        print(f"{len(begun)} restarts, {twice} steps made twice, {len(steps)} of {options.steps} steps in the log.")
        print(f"The model is {found}.")
        return 0 if same and len(steps) == options.steps else 1


def write_text(folder: Path) -> None:
    """Letters, and the same backwards."""
    generator = random.Random(3)
    rows = [[generator.choice("abcdefghij") for _ in range(generator.randint(2, 9))] for _ in range(2000)]
    (folder / "train.en").write_text("".join(" ".join(row) + "\n" for row in rows))
    (folder / "train.de").write_text("".join(" ".join(row[::-1]) + "\n" for row in rows))


def run(folder: Path, output: Path, ranks: int, steps: int, kills: int, generator: random.Random) -> None:
    """Train under torchrun, killing a rank now and then."""
    torchrun = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(ranks)]
    torchrun += ["--max-restarts", str(kills + 1), "--monitor-interval", "0.2"]
    train = ["train", str(folder / "train.en"), str(folder / "train.de"), "-o", str(output), "--steps", str(steps)]
    command = [*torchrun, "-m", "transduce", *train, "--recipe", "small-corpus", *SETTINGS]
    said = output.with_suffix(".said")
    with said.open("wb") as file:
        process = subprocess.Popen(command, env=os.environ | {"OMP_NUM_THREADS": "1"}, stdout=file, stderr=file)
        moments = sorted(generator.sample(range(5, steps - 5), kills))
        for moment in moments:
            while process.poll() is None and reached(output) < moment:
                time.sleep(0.02)
            victims = members(process.pid)
            if process.poll() is None and len(victims) == ranks:
                os.kill(generator.choice(victims), signal.SIGKILL)
                while process.poll() is None and set(members(process.pid)) & set(victims):
                    time.sleep(0.02)
    if process.wait():
        sys.exit(said.read_text(errors="replace"))


def members(parent: int) -> list[int]:
    """The processes that a process has started."""
    listed = subprocess.run(["ps", "-o", "pid=", "--ppid", str(parent)], capture_output=True, text=True, check=False)
    return sorted(map(int, listed.stdout.split()))


def events(model: Path) -> list[dict[str, Any]]:
    """What the log of a run tells."""
    path = model / "log.jsonl"
    found = []
    for line in path.read_text(encoding="utf-8").splitlines() if path.exists() else []:
        try:
            found.append(json.loads(line))
        except ValueError:  # half a line of one that was killed
            continue
    return found


def reached(model: Path) -> int:
    """The last step that was made."""
    return max((event["step"] for event in events(model)[-20:] if event["event"] == "Stepped"), default=0)


if __name__ == "__main__":
    sys.exit(main())
