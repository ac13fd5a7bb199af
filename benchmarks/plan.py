"""Is the plan right? `transduce plan` against real training runs of the same recipes: memory, and time of a step.

    python benchmarks/plan.py [--cases small medium base] [--rounds 1] [--seconds 20]

Each run trains on the built-in Tatoeba English-German corpus in a process of its own, validates at its end and writes
its checkpoint; peak memory is the process's largest resident set (Linux, macOS), up to the last step and of the whole
run: how much validating takes depends on how much a model writes, early ones the most. Plan and run take turns. Where
other programs have the processor at times, seconds by the clock say little: processor seconds of a step, over all
threads, are printed beside them, and their ratio is the one to look at. On a GPU none of this has been tried.
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
MEASURED = {"steps, MB": 1e6, "run, MB": 1e6, "clock, s": 1, "processor, s": 1}
"""What is compared, and in which unit: peak memory up to the last step and of all; time of a step."""
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
    print(f"{'':8}" + "".join(f"{name + ', plan run ratio':>32}" for name in MEASURED))
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
    line = f"{case:8}"
    for name, scale in MEASURED.items():
        choose = max if scale > 1 else statistics.median
        one, other = (choose(each[name] for each in found) / scale for found in (plans, runs))
        digits = 0 if scale > 1 else 2
        line += f"{one:16,.{digits}f}{other:8,.{digits}f}{one / other:8.2f}"
    print(line, flush=True)


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
        "steps, MB": told["memory"]["total"] - told["memory"]["validation"],
        "run, MB": told["memory"]["total"],
        "clock, s": told["seconds_per_step"],
        "processor, s": measured["processor_seconds"] * scale,
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
    times: list[tuple[float, float, float]] = []

    def peak() -> float:
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)

    def note(event: Event) -> None:
        if isinstance(event, Stepped):
            times.append((event.seconds, time.process_time(), peak()))

    training.train(TranslationLesson(prepared, resolved), note)
    first, last, count = times[WARMUP - 1], times[-1], len(times) - WARMUP
    memory = {"steps, MB": last[2], "run, MB": peak()}
    print(json.dumps(memory | {"clock, s": (last[0] - first[0]) / count, "processor, s": (last[1] - first[1]) / count}))


def _json(command: list[str]) -> dict:  # type: ignore[type-arg]
    result = subprocess.run(command, stdout=subprocess.PIPE, env=os.environ, check=True, text=True)
    return json.loads(result.stdout)


if __name__ == "__main__":
    main()
