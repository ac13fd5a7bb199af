"""Results as tables: means and spread over seeds, and how far each variant is from the first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from experiment.grid import Grid, Run, short
from experiment.places import Places, Result
from experiment.texts import Texts
from results.scores import Scores, standard_error
from results.tables import markdown_table
from transduce.evaluation import compare

__all__ = ["Rows", "comparison_rows", "description", "markdown", "notes"]

Results = Mapping[tuple[str, int], Result]
Rows = list[list[str]]

COLUMNS = [("steps", 0), ("minutes", 1), ("cpu_minutes", 1)]
"""Plain means, and their digits."""
SAMPLES = 1000
"""Of the bootstrap."""
TITLES = {"bleu": "BLEU", "chrf": "chrF2"}
"""As sacreBLEU writes them before a signature."""


def comparison_rows(grid: Grid, places: Places, texts: Texts) -> Rows:
    """A row a variant that has results, under a header."""
    results = places.results(grid)
    found = {name: [results[name, seed] for seed in grid.seeds if (name, seed) in results] for name in _names(grid)}
    found = {name: runs for name, runs in found.items() if runs}
    if not found:
        return []
    splits = list(texts.measured)
    last, base = splits[-1], next(iter(found))
    verdicts = _verdicts(grid, places, texts, list(found), results)
    titles = [f"{split} BLEU" for split in splits]
    rows: Rows = [
        ["variant", "seeds", "steps", "minutes", "CPU minutes", *titles, f"{last} chrF", "difference", "paired"]
    ]
    settings = dict(grid.all_variants())
    for name, runs in found.items():
        bleu = {split: Scores([run[split]["bleu"] for run in runs]) for split in splits}
        numbers = [f"{Scores([run[key] for run in runs]).mean:,.{digits}f}" for key, digits in COLUMNS]
        difference = "" if name == base else _difference(_bleu(found[base], last), bleu[last])
        chrf = Scores([run[last]["chrf"] for run in runs])
        shown = _named(name, settings[name])
        rows.append(
            [shown, str(len(runs)), *numbers, *map(str, bleu.values()), str(chrf), difference, verdicts.get(name, "")]
        )
    return rows


def notes(grid: Grid, places: Places, texts: Texts) -> str:
    """What the columns mean, and how the numbers were made."""
    results = list(places.results(grid).values())
    if not results:
        return ""
    last = list(texts.measured)[-1]
    several = any(result["seed"] != results[0]["seed"] for result in results)
    spread = "Mean ± standard deviation over seeds; difference to the first row ± twice its standard error. "
    commits = ", ".join(dict.fromkeys(result["commit"] for result in results))
    signatures = "; ".join(
        dict.fromkeys(
            f"{TITLES[metric]}|{signature}" for result in results for metric, signature in result["signature"].items()
        )
    )
    decoding = "; ".join(dict.fromkeys(result["decoding"] for result in results))
    return (
        f"{spread if several else ''}“Paired” are the seeds for which a paired bootstrap on {last} finds it better or "
        "worse than the first row with p < 0.05. Minutes are of training. "
        f"Measured with {decoding}. Commit {commits}. {signatures}."
    )


def description(grid: Grid, texts: Texts) -> str:
    """What was trained, in a sentence."""
    pairs = f"{grid.pairs:,} pairs of " if grid.pairs else ""
    corpus = grid.corpus if isinstance(grid.corpus, str) else texts.train.name
    if grid.pairs and not isinstance(grid.corpus, str):
        corpus = " + ".join(name.rpartition("/")[2] for name in grid.corpus)
    budget = ", ".join(f"{value:,g} {key}" for key, value in grid.budget.model_dump().items() if value)
    settings = f" with {' '.join(grid.settings)}" if grid.settings else ""
    return f"{pairs}{corpus}, recipe {grid.recipe}{settings}, at most {budget} a run."


def markdown(grid: Grid, places: Places, texts: Texts, rows: Rows) -> str:
    """For the log of experiments."""
    if not rows:
        return "No run is complete yet.\n"
    missing = len(grid.runs()) - len(places.results(grid))
    so_far = f" {missing} of {len(grid.runs())} runs are not complete yet." if missing else ""
    return f"{description(grid, texts)}{so_far}\n\n{markdown_table(rows)}\n{notes(grid, places, texts)}\n"


def _names(grid: Grid) -> list[str]:
    return [name for name, _ in grid.all_variants()]


def _named(name: str, settings: Sequence[str]) -> str:
    """The variant with its settings, where its name does not say them."""
    if not settings or all(short(setting) in name for setting in settings):
        return name
    return f"{name} (`{' '.join(settings)}`)"


def _bleu(runs: Sequence[Result], split: str) -> Scores:
    return Scores([run[split]["bleu"] for run in runs])


def _difference(base: Scores, other: Scores) -> str:
    words = f"{other.mean - base.mean:+.2f}"
    if min(len(base.values), len(other.values)) < 2:
        return words
    return f"{words} ± {2 * standard_error(base, other):.2f}"


def _verdicts(grid: Grid, places: Places, texts: Texts, names: Sequence[str], results: Results) -> dict[str, str]:
    """In words, for how many seeds each variant is better or worse than the first, by resampling the sentences."""
    split, corpus = list(texts.measured.items())[-1]
    references = [pair.target for pair in corpus.pairs(allow_identical=True)]
    runs = {(run.variant, run.seed): run for run in grid.runs()}
    found: dict[str, list[str]] = {name: [] for name in names[1:]}
    for seed in grid.seeds:
        there = [name for name in names if (name, seed) in results]
        if names[0] not in there or len(there) < 2:
            continue
        systems = {name: _lines(places, runs[name, seed], split) for name in there}
        how = {"tokenize": grid.measure.tokenize, "lowercase": grid.measure.lowercase}
        comparison = compare(systems, references, metrics=("bleu",), samples=SAMPLES, **how)
        for name in there[1:]:
            score = comparison.systems[name]["bleu"]
            found[name].append("better" if score.better else "worse" if score.worse else "")
    return {name: _counted(seeds) for name, seeds in found.items()}


def _counted(verdicts: Sequence[str]) -> str:
    counts = [f"{verdicts.count(word)} {word}" for word in ("better", "worse") if word in verdicts]
    return f"{', '.join(counts) or '0'} of {len(verdicts)}" if verdicts else ""


def _lines(places: Places, run: Run, split: str) -> list[str]:
    return places.translations(run, split).read_text(encoding="utf-8").removesuffix("\n").split("\n")
