"""Which settings give better translations? Trains every variant of a grid on one corpus and measures all alike.

    python benchmarks/quality.py benchmarks/grids/tatoeba-10k.yaml -o runs-10k [--jobs 2] [--minutes 5]
    python benchmarks/quality.py benchmarks/grids/tatoeba-10k.yaml -o runs-10k --report

A grid file names a corpus, a recipe, the variants, the seeds, the budget and how to measure (experiment/grid.py has
every key, benchmarks/grids has examples). Each run is an ordinary run of `transduce train`, in OUTPUT/runs, --jobs of
them at once with the cores shared among them. Stop it or kill it when you like: the same command goes on, and what is
complete is not run again. Results are lines of OUTPUT/results.jsonl; OUTPUT/report.md is a table for docs/log.md, with
a paired bootstrap against the first variant, and OUTPUT/report.html shows the curves of all runs.

"CPU minutes" are those of the training processes, whatever else the machine is doing.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path

from experiment.grid import Grid, Run, load_grid
from experiment.places import Places
from experiment.tables import comparison_rows, markdown
from experiment.texts import Texts, find_texts
from transduce.errors import TransduceError
from transduce.storage import storage_errors, write_whole


def main(options: Sequence[str] | None = None) -> int:
    """Run what is not complete, then write the report; the exit code: 1 if runs have failed, 130 if it was stopped."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("grid", type=Path, help="YAML file")
    parser.add_argument("-o", "--output", type=Path, required=True, help="directory of the experiment")
    parser.add_argument("--jobs", type=int, default=1, help="runs at once (default: 1)")
    parser.add_argument("--steps", type=int, help="of each run, instead of the grid's budget")
    parser.add_argument("--minutes", type=float, help="of each run, instead of the grid's budget")
    parser.add_argument("--data", type=Path, default=Path(), help="folder of the files that the grid names")
    parser.add_argument("--report", action="store_true", help="only write the report, of what there is so far")
    parser.add_argument("--run", help=argparse.SUPPRESS)
    arguments = parser.parse_args(options)
    if arguments.jobs < 1:
        parser.error("--jobs must be 1 or more")
    try:
        with storage_errors(arguments.output):
            return work(arguments)
    except KeyboardInterrupt:  # the second one: the runs save by themselves, now that nobody waits for them
        return 130
    except TransduceError as error:
        print(f"quality: {error}", file=sys.stderr)
        return 2


def work(arguments: argparse.Namespace) -> int:
    """What the command does."""
    grid = load_grid(arguments.grid, steps=arguments.steps, minutes=arguments.minutes)
    places = Places(arguments.output)
    texts = find_texts(grid, arguments.data, arguments.output)
    places.make()
    if arguments.run:
        from experiment.one_run import carry_out

        return carry_out(next(run for run in grid.runs() if run.name == arguments.run), texts, places)
    code = 0 if arguments.report else run_all(grid, places, arguments)
    report(grid, places, texts)
    return code


def run_all(grid: Grid, places: Places, arguments: argparse.Namespace) -> int:
    """All runs, in processes of their own."""
    from experiment.display import Display
    from experiment.runner import Runner

    def command(run: Run) -> Sequence[str]:
        budget = [f"--{key}={getattr(arguments, key)}" for key in ("steps", "minutes") if getattr(arguments, key)]
        where = ["-o", str(arguments.output), "--data", str(arguments.data)]
        return [sys.executable, __file__, str(arguments.grid), *where, *budget, "--run", run.name]

    runner = Runner(places, arguments.jobs, command, Display())
    runner.run_all(grid.runs())
    return 130 if runner.stopping else int(bool(runner.failed))


def report(grid: Grid, places: Places, texts: Texts) -> None:
    """Print and write the tables, and write the curves."""
    from experiment.page import curves_page

    rows = comparison_rows(grid, places, texts)
    text = markdown(grid, places, texts, rows)
    print(text)
    write_whole(places.directory / "report.md", text.encode())
    page = places.directory / "report.html"
    write_whole(page, curves_page(grid, places, texts, rows).encode())
    print(f"Curves: {page}")


if __name__ == "__main__":
    sys.exit(main())
