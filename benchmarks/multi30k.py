"""Multi30k by the custom of the papers, from the corpus to the score: two models together, and a third that leads back.

    python benchmarks/multi30k.py DATA --into de -o runs/multi30k-de

DATA has train, val and test2016, lowercased and tokenised by Moses (train.lc.tok.en.gz, …). Two trainings run side by
side, a core each, two to three hours in all; stop it when you like, the same command goes on. Length penalty and weight
of the way back are chosen on val; test2016 is translated once, at the end. What it came to is in docs/log.md.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

RECIPE = ["--recipe", "small-corpus"]
SETTINGS = [
    "model.dropout=0.3",
    "tokenizer.vocab_size=10000",
    "tokenizer.split_marks=false",  # the text is cut at marks already
    "data.variants=0",  # only single sentences are measured
]
SAMPLED = "training.sampled_softmax=2000"
"""As good and a fifth cheaper, except in the end."""


@dataclass(frozen=True)
class Training:
    """One call of `transduce train`."""

    name: str
    steps: int
    seed: int
    settings: list[str]
    started_from: str | None = None
    leads_back: bool = False


def begun(name: str, steps: int, seed: int, *settings: str, leads_back: bool = False) -> Training:
    """The first part of a model's training."""
    return Training(f"{name}-begun", steps, seed, [*settings, SAMPLED], leads_back=leads_back)


def finished(name: str, steps: int, seed: int, rate: float, leads_back: bool = False) -> Training:
    """The second part, from where the first one ended: the whole vocabulary, a cosine from `rate` to zero."""
    cosine = ["training.schedule=cosine", f"training.rate={rate}", "training.warmup=100", "training.cooldown=0"]
    settings = [*cosine, "training.weight_decay=0.2"]
    return Training(name, steps, seed, settings, started_from=f"{name}-begun", leads_back=leads_back)


MODELS = [
    [
        begun("one", 4200, 1, "training.weight_decay=0.2", "training.cooldown=0"),
        finished("one", 2000, 3, rate=0.0014),  # where the first part has come down to
    ],
    [
        begun("two", 3500, 2, "training.weight_decay=0.3", "training.cooldown=0.4"),
        finished("two", 3200, 4, rate=0.002),
    ],
    [
        begun("back", 3200, 1, "training.weight_decay=0.2", "training.cooldown=0.5", leads_back=True),
        finished("back", 2200, 5, rate=0.002, leads_back=True),
    ],
]
"""The trainings of each, one after the other."""


def main() -> None:
    """Train, then choose the search and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path)
    parser.add_argument("--into", choices=["de", "fr"], default="de")
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    options.output.mkdir(parents=True, exist_ok=True)

    def files(part: str, *languages: str) -> list[str]:
        return [str(options.data / f"{part}.lc.tok.{language}.gz") for language in languages]

    def train(trainings: list[Training]) -> None:
        for each in trainings:
            ways = (options.into, "en") if each.leads_back else ("en", options.into)
            dev_source, dev_target = files("val", *ways)
            command = [sys.executable, "-m", "transduce", "train", *files("train", *ways)]
            command += ["--dev-source", dev_source, "--dev-target", dev_target, "--languages", "-".join(ways), *RECIPE]
            command += ["-o", str(options.output / each.name), "--seed", str(each.seed), "--steps", str(each.steps)]
            command += ["--from", str(options.output / each.started_from)] if each.started_from else []
            with (options.output / f"{each.name}.txt").open("w", encoding="utf-8") as log:
                print(f"{each.name}: {each.steps:,} steps, see {log.name}", flush=True)
                environment = os.environ | {"OMP_NUM_THREADS": "1"}
                subprocess.run(
                    [*command, *SETTINGS, *each.settings], check=True, stdout=log, stderr=log, env=environment
                )

    with ThreadPoolExecutor(2) as cores:
        for done in [cores.submit(train, trainings) for trainings in MODELS]:
            done.result()
    model, beside, back = (str(options.output / name) for name in ("one", "two", "back"))
    search = [sys.executable, str(Path(__file__).with_name("search_settings.py")), model, "--with", beside]
    search += ["--back", back, "--weights", "0.3", "0.5", "0.7", "1", "--beams", "10", "--alphas", "1", "1.4"]
    search += ["--dev", *files("val", "en", options.into), "--test", *files("test2016", "en", options.into)]
    subprocess.run([*search, "--tokenize", "none", "--lowercase"], check=True)


if __name__ == "__main__":
    main()
