"""Is the plan right? `transduce plan` against real training runs of the same recipes: memory, and time of a step.

    python benchmarks/plan.py [--cases small medium base] [--rounds 1] [--seconds 20]

Each run trains on the built-in Tatoeba English-German corpus in a process of its own, validates at its end and writes
its checkpoint; peak memory is the process's largest resident set (Linux, macOS). Plan and run take turns. Where other
programs have the processor at times, seconds by the clock say little: processor seconds of a step, over all threads,
are printed beside them, and their ratio is the one to look at. On a GPU none of this has been tried.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path

CASES = {
    "small": ("small-corpus", [], 40),
    "medium": ("medium-corpus", [], 40),
    "base": ("paper-base", ["tokenizer.vocab_size=8000", "training.batch_tokens=2048"], 5),
}
"""Recipe, settings, steps of the real run."""
WARMUP = 2
"""Steps of a run that are left out of its time: so are the plan's first ones."""


def main() -> None:
    """Plan and train each case, and print both."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=CASES, default=list(CASES))
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=20)
    parser.add_argument("--run", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.run:
        run(arguments.cases[0], arguments.run)
        return
    print(f"{'':8}{'memory, MB':>24}{'clock, s a step':>26}{'processor, s a step':>28}")
    print(
        f"{'':8}"
        + "".join(f"{word:>8}" for word in ("plan", "run", "ratio"))
        + f"{'plan':>10}{'run':>8}{'ratio':>8}" * 2
    )
    for case in arguments.cases:
        compare(case, arguments.rounds, arguments.seconds)


def compare(case: str, rounds: int, seconds: float) -> None:
    """A line of the table: medians over the rounds; the largest memory of them."""
    plans, runs = [], []
    for _ in range(rounds):
        with tempfile.TemporaryDirectory() as directory:
            command = [sys.executable, __file__, "--cases", case, "--run", directory]
            prepared = _json(command)  # which the first time only prepares
            plans.append(planned(case, prepared, seconds))
            runs.append(_json(command))
    cells = []
    for name, scale in (("memory", 1e6), ("seconds", 1), ("processor", 1)):
        choose = max if name == "memory" else statistics.median
        one, other = (choose(each[name] for each in found) / scale for found in (plans, runs))
        cells += [one, other, one / other]
    print(
        f"{case:8}{cells[0]:8,.0f}{cells[1]:8,.0f}{cells[2]:8.2f}{cells[3]:10.2f}{cells[4]:8.2f}{cells[5]:8.2f}"
        f"{cells[6]:10.2f}{cells[7]:8.2f}{cells[8]:8.2f}",
        flush=True,
    )


def planned(case: str, prepared: dict[str, float], seconds: float) -> dict[str, float]:
    """What the command says, of texts as long as the corpus's."""
    recipe, settings, steps = CASES[case]
    lengths = f"{prepared['source']:.2f},{prepared['target']:.2f}"
    command = [sys.executable, "-m", "transduce", "plan", recipe, *settings, "--steps", str(steps), "--json"]
    told = _json([*command, "--tokens-per-pair", lengths, "--seconds", str(seconds)])
    measured = told["measured"]
    # Of a step of the measured size; the run's may be larger.
    scale = told["tokens_per_step"] / measured["tokens"]
    return {
        "memory": told["memory"]["total"],
        "seconds": told["seconds_per_step"],
        "processor": measured["processor_seconds"] * scale,
    }


def run(case: str, directory: Path) -> None:
    """Prepare, or train what is prepared, and report as JSON."""
    import resource
    import time

    from transduce.data.builtin import builtin_corpus
    from transduce.training.events import Event, Stepped
    from transduce.training.lessons import TranslationLesson
    from transduce.training.recipes import find_recipe
    from transduce.training.run import TrainingRun

    recipe, settings, steps = CASES[case]
    budget = ["budget.minutes=null", f"budget.steps={steps}"]
    resolved = find_recipe(recipe).with_overrides([*settings, *budget])
    training = TrainingRun(directory, resolved)
    begins = not (directory / "run" / "prepared").exists()
    prepared = training.prepare([builtin_corpus("tatoeba-en-de")], [builtin_corpus("tatoeba-en-de", "dev")])
    if begins:
        print(json.dumps({side: count / len(prepared.train) for side, count in prepared.train.tokens.items()}))
        return
    times: list[tuple[float, float]] = []

    def note(event: Event) -> None:
        if isinstance(event, Stepped):
            times.append((event.seconds, time.process_time()))

    training.train(TranslationLesson(prepared, resolved), note)
    (clock, processor), (last_clock, last_processor) = times[WARMUP - 1], times[-1]
    count = len(times) - WARMUP
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)
    seconds = {"seconds": (last_clock - clock) / count, "processor": (last_processor - processor) / count}
    print(json.dumps({"memory": peak} | seconds))


def _json(command: list[str]) -> dict:  # type: ignore[type-arg]
    result = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ, check=True, text=True)
    return json.loads(result.stdout)


if __name__ == "__main__":
    main()
