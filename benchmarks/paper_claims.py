"""What the paper claims, measured at a size that two cores can carry, beside the paper's own numbers.

- Transformer against the recurrent network that it replaced, with as many parameters: after equal time, equal steps.
- Table 1: time against sentence length, of a layer and of whole networks of the same width.
- Table 3: heads, the width of keys, dropout, label smoothing, learned positions.

    python benchmarks/paper_claims.py -o claims [--steps 600] [--seeds 3] [--jobs 2]
    python benchmarks/paper_claims.py -o claims --source train.en --target train.de --dev-source … --dev-target …

Without files it takes 30,000 pairs of the built-in tatoeba-en-de. Each run is a process with one thread; its result is
a line of claims/results.jsonl, and what is there is not run again. "Time" is the process's CPU time while training, so
that other work on the machine counts little. All runs train for --steps; the recurrent network goes on if the
Transformer's time is not over by then. With --minutes instead, all train for so long. Scores are of the dev set,
greedy, raw and cased. Writes claims/claims.md and claims/claims.html.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import time
from concurrent.futures import Future, ThreadPoolExecutor, as_completed, wait
from itertools import islice
from pathlib import Path
from statistics import mean
from typing import Any

from claims.cases import BASE, CASES, RECURRENT, Case
from claims.page import claims_page, markdown
from claims.tables import by_case
from results.commit import commit

BUILTIN, BUILTIN_PAIRS = "tatoeba-en-de", 30_000
VOCABULARY = 4000
CURVE_POINTS = 3
"""Scores on the way of the networks whose curves are drawn; the others are scored at the end."""


def main() -> None:
    """Run what has not been run, then print and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--output", type=Path, default=Path("claims"), help="directory of results")
    for name in ("--source", "--target", "--dev-source", "--dev-target"):
        parser.add_argument(name, type=Path, metavar="FILE")
    parser.add_argument("--steps", type=int, default=600, help="of each run (default: 600)")
    parser.add_argument("--minutes", type=float, help="of each run, in CPU time, instead of steps")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2, help="runs at once (default: 2)")
    parser.add_argument("--only-tables", action="store_true", help="of what has been run so far")
    parser.add_argument("--run", choices=[*(case.name for case in CASES), "times"], help=argparse.SUPPRESS)
    parser.add_argument("--seed", type=int, help=argparse.SUPPRESS)
    parser.add_argument("--seconds", type=float, default=0.0, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    files = [arguments.source, arguments.target, arguments.dev_source, arguments.dev_target]
    if any(files) and not all(files):
        parser.error("give all of --source, --target, --dev-source and --dev-target, or none")
    if arguments.minutes:
        arguments.steps = 0
    if arguments.run:
        print(json.dumps(run(arguments)))
        return
    arguments.output.mkdir(parents=True, exist_ok=True)
    if not arguments.only_tables:
        prepare(arguments)  # once, before several processes ask for it
        run_all(arguments)
    results = read(arguments)
    times = next((result["times"] for result in results if result["case"] == "times"), [])
    commits = ", ".join(dict.fromkeys(result["commit"] for result in results))
    how = f"Learned from {corpus_name(arguments)}, {amount(arguments)} a run; commit {commits}."
    found = by_case(results)
    text = markdown(found, times, arguments.steps, how)
    print(text)
    (arguments.output / "claims.md").write_text(text, encoding="utf-8")
    page = arguments.output / "claims.html"
    page.write_text(claims_page(found, times, arguments.steps, how), encoding="utf-8")
    print(f"Plots: {page}")


def run(arguments: argparse.Namespace) -> dict[str, Any]:
    """One run, in this process."""
    import torch

    torch.set_num_threads(1)
    if arguments.run == "times":
        from claims.timing import measured_times

        return {"case": "times", "seed": 0, "times": measured_times()}
    from claims.runs import Run

    case = next(case for case in CASES if case.name == arguments.run)
    points = CURVE_POINTS if case in (BASE, RECURRENT) else 1
    return Run(case, arguments.seed, prepare(arguments), arguments.steps, arguments.seconds, points).train()


def run_all(arguments: argparse.Namespace) -> None:
    """All runs that have no result yet: first the base model's, whose time the recurrent network gets."""
    done = {(result["case"], result["seed"]) for result in read(arguments)}
    if ("times", 0) not in done:
        print("time against length …", flush=True)
        keep(arguments, "times", 0, started(arguments, "times", 0, 0.0))
    jobs = [(case, seed) for seed in range(1, arguments.seeds + 1) for case in CASES]
    jobs = [(case, seed) for case, seed in jobs if (case.name, seed) not in done]
    jobs.sort(key=lambda job: job[0] is not BASE)
    start, finished = time.perf_counter(), 0
    with ThreadPoolExecutor(arguments.jobs) as pool:
        base: list[Future[dict[str, Any]]] = []

        def train(case: Case, seed: int) -> dict[str, Any]:
            if case is RECURRENT:
                wait(base)
            return keep(arguments, case.name, seed, started(arguments, case.name, seed, seconds(arguments, case)))

        waiting = {}
        for case, seed in jobs:
            future = pool.submit(train, case, seed)
            waiting[future] = case, seed
            if case is BASE:
                base.append(future)
        for future in as_completed(waiting):
            case, seed = waiting[future]
            last = future.result()["curve"][-1]
            finished += 1
            left = (time.perf_counter() - start) / finished * (len(jobs) - finished) / 60
            scores = f"BLEU {last['bleu']:.2f}, perplexity {last['perplexity']:.2f}"
            spent = f"{last['step']:,.0f} steps, {last['seconds']:.0f} s"
            told = f"{finished}/{len(jobs)} {case.name}, seed {seed}: {scores} ({spent}); {left:.0f} min left"
            print(told, flush=True)


def seconds(arguments: argparse.Namespace, case: Case) -> float:
    """CPU time that a run lasts at least."""
    if arguments.minutes:
        return float(60 * arguments.minutes)
    runs = by_case(read(arguments)).get(BASE.name, [])
    return mean(run["curve"][-1]["seconds"] for run in runs) if case is RECURRENT and runs else 0.0


def started(arguments: argparse.Namespace, name: str, seed: int, least: float) -> dict[str, Any]:
    """The result of a run in a process of its own."""
    command = [sys.executable, __file__, "--run", name, "--seed", str(seed), "--seconds", str(least)]
    command += ["-o", str(arguments.output), "--steps", str(arguments.steps)]
    for option in ("source", "target", "dev_source", "dev_target"):
        if getattr(arguments, option):
            command += [f"--{option.replace('_', '-')}", str(getattr(arguments, option))]
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, stdout=subprocess.PIPE, text=True, env=environment, check=False)
    if result.returncode:
        sys.exit(f"{name}, seed {seed}, failed.")
    found: dict[str, Any] = json.loads(result.stdout)
    return found


def keep(arguments: argparse.Namespace, name: str, seed: int, result: dict[str, Any]) -> dict[str, Any]:
    """Add a result to those on disk, with what it depends on."""
    with (arguments.output / "results.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(result | {"settings": settings(arguments, name), "commit": commit()}) + "\n")
    return result


def read(arguments: argparse.Namespace) -> list[dict[str, Any]]:
    """Results of runs as they would be run now."""
    path = arguments.output / "results.jsonl"
    lines = path.read_text(encoding="utf-8").splitlines() if path.is_file() else []
    results = [json.loads(line) for line in lines]
    return [result for result in results if result["settings"] == settings(arguments, result["case"])]


def settings(arguments: argparse.Namespace, name: str) -> dict[str, Any]:
    """What a result depends on."""
    if name == "times":
        return {}
    case = next((case for case in CASES if case.name == name), None)
    limits = {"steps": arguments.steps, "minutes": arguments.minutes, "corpus": corpus_name(arguments)}
    return limits | ({"model": case.model, "training": case.training} if case else {})


def prepare(arguments: argparse.Namespace) -> Any:
    """The corpus as ids."""
    from transduce.data.builtin import builtin_corpus
    from transduce.data.corpus import Corpus
    from transduce.data.prepare import Preparation
    from transduce.data.prepare import prepare as prepared

    if arguments.source:
        train, dev = Corpus(arguments.source, arguments.target), Corpus(arguments.dev_source, arguments.dev_target)
    else:
        path = arguments.output / f"{BUILTIN}.tsv"
        if not path.is_file():
            pairs = islice(builtin_corpus(BUILTIN).pairs(), BUILTIN_PAIRS)
            path.write_text("".join(f"{pair.source}\t{pair.target}\n" for pair in pairs), encoding="utf-8")
        train, dev = Corpus(path), builtin_corpus(BUILTIN, "dev")
    return prepared(Preparation([train], [dev], vocab_size=VOCABULARY), arguments.output / "prepared")


def corpus_name(arguments: argparse.Namespace) -> str:
    """For people."""
    if arguments.source:
        return f"{arguments.source.parent.name}/{arguments.source.name}"
    return f"{BUILTIN_PAIRS:,} pairs of {BUILTIN}"


def amount(arguments: argparse.Namespace) -> str:
    """How long a run lasts, for people."""
    return f"{arguments.minutes:g} minutes of CPU time" if arguments.minutes else f"{arguments.steps:,} steps"


if __name__ == "__main__":
    main()
