"""`transduce train`: from text files to a translator."""

from __future__ import annotations

import os
import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from transduce.bundle import Bundle
    from transduce.data.corpus import Corpus
    from transduce.data.prepare import Prepared
    from transduce.text import Direction
    from transduce.training.recipe import Recipe

__all__ = ["train"]

MEASURED = 300
"""Dev sentences on which a shortlist's cost is measured."""


def train(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="(SOURCE TARGET | TSV | CORPUS)… [key=value …]",
            help="Two text files, line by line translations of each other (or one .tsv, or a built-in corpus such as "
            "tatoeba-en-de), or several of these; then settings to change, such as training.warmup=400.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory of the model; also where a run goes on.")],
    weights: Annotated[
        str | None, typer.Option(help="Of several corpora, how often to see each: 1,3 sees the second three times.")
    ] = None,
    languages: Annotated[
        str | None, typer.Option(help="From which into which, if the files' names do not say: en-de, or en-de,en-fr.")
    ] = None,
    dev_source: Annotated[Path | None, typer.Option(help="Dev set; held out of the corpus if not given.")] = None,
    dev_target: Annotated[Path | None, typer.Option(help="Its translations.")] = None,
    recipe: Annotated[str | None, typer.Option(help="Name of a recipe, or a YAML file; else by corpus size.")] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after so many updates.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Stop after seeing the corpus so many times.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes of training.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random.")] = None,
    allow_identical: Annotated[
        bool, typer.Option("--allow-identical", help="Source and target may be the same text (toy tasks).")
    ] = False,
) -> None:
    """Train a translator. Stop it when you like: the same command goes on where it was."""
    from rich.console import Console

    from transduce.cli.corpus_arguments import dev_corpora, training_corpora
    from transduce.cli.training_display import TrainingDisplay

    console = Console()
    with console.status("Starting …"):
        from transduce.training.run import TrainingRun

    files, settings = _split(corpus)
    corpora = training_corpora(files, weights, languages)
    dev = dev_corpora(files, corpora, dev_source, dev_target)
    resolved = _recipe(console, recipe, settings, corpora, steps, epochs, minutes, seed)
    directions = [each.direction for each in corpora]
    _advise_tags(console, resolved, directions)
    run = TrainingRun(output, resolved)
    display = TrainingDisplay(console, resolved.budget)
    with display.preparation() as report:
        prepared = run.prepare(corpora, dev, allow_identical, report)
    display.describe(prepared)
    stop = _StopSignal()
    with stop, display.training():
        finished = run.train(prepared, display.show, stop.asked)
    if finished.complete:
        bundle = run.write_bundle(prepared, directions)
        if _compile(bundle, console):
            _add_shortlist(bundle, prepared, console)
        console.print(f'The model is in [bold]{output}[/bold]. Try: transduce translate -m {output} "…"')


class _StopSignal:
    """Ctrl-C and SIGTERM ask the run to save and stop; a second Ctrl-C stops at once."""

    def __init__(self) -> None:
        self._asked = False
        self._before: dict[int, object] = {}

    def asked(self) -> bool:
        """Whether someone wants the run to stop."""
        return self._asked

    def __enter__(self) -> None:
        for number in (signal.SIGINT, signal.SIGTERM):
            self._before[number] = signal.signal(number, self._ask)

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)  # type: ignore[arg-type]

    def _ask(self, number: int, frame: FrameType | None) -> None:
        if self._asked:
            raise KeyboardInterrupt
        self._asked = True


def _compile(bundle: Bundle, console: Console) -> bool:
    """Compile the model for CTranslate2, which translates faster; what it has no counterpart of stays with PyTorch."""
    from transduce.interop.ctranslate2 import compile_model
    from transduce.storage import storage_errors

    try:
        with storage_errors(bundle.path):
            compile_model(bundle.model(), bundle.vocabularies(), bundle.path / "ctranslate2")
    except ConfigError as error:
        console.print(f"Not compiled: {error}")
        return False
    return True


def _add_shortlist(bundle: Bundle, prepared: Prepared, console: Console) -> None:
    """Learn which words become which, for `translate --shortlist`, and say what it costs."""
    from transduce.interop.parity import parity
    from transduce.interop.shortlist import MOST_PAIRS, WORTHWHILE, learn_shortlist, write_shortlist
    from transduce.storage import storage_errors
    from transduce.translator import Translator

    train, vocabularies = prepared.train, prepared.vocabularies
    if vocabularies.target.size < WORTHWHILE:
        return
    spread = range(0, len(train), -(-len(train) // MOST_PAIRS))
    with console.status("Learning a shortlist …"), storage_errors(bundle.path):
        lists = learn_shortlist(((train.ids("source", i), train.ids("target", i)) for i in spread), vocabularies)
        write_shortlist(lists, vocabularies, bundle.path / "ctranslate2")
        if bundle.config.target_languages:  # the dev set's sentences do not say which is theirs
            return
        plain, short = (Translator(bundle, "ctranslate2", shortlist) for shortlist in (False, True))
        dev = (prepared.dev_sources[:MEASURED], prepared.dev_references[:MEASURED])
        report = parity(plain, short, *dev)
        report.write(bundle.path / "ctranslate2" / "shortlist.json")
    console.print(
        f"translate --shortlist is faster; on {report.sentences} dev sentences it has BLEU {report.exported_bleu:.1f} "
        f"instead of {report.bleu:.1f}."
    )


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Files and settings: a setting has an = and is not a file."""
    settings = [each for each in arguments if "=" in each and not os.path.exists(each)]
    return [each for each in arguments if each not in settings], settings


def _advise_tags(console: Console, recipe: Recipe, directions: list[Direction]) -> None:
    """Without tags a model of several target languages guesses which one is wanted."""
    targets = dict.fromkeys(each.target for each in directions if each.target)
    if len(targets) > 1 and not recipe.tokenizer.language_tags:
        names = ", ".join(targets)
        console.print(f"Several target languages ({names}): tokenizer.language_tags=true tells them apart.")


def _recipe(
    console: Console,
    name: str | None,
    settings: list[str],
    corpora: list[Corpus],
    steps: int | None,
    epochs: int | None,
    minutes: float | None,
    seed: int | None,
) -> Recipe:
    from transduce.training.recipes import find_recipe, recipe_for

    if name is None:
        with console.status("Counting pairs …"):
            pairs = sum(1 for each in corpora for _ in each.pairs(allow_identical=True))
        name, reason = recipe_for(pairs)
        console.print(f"Recipe [bold]{name}[/bold] ({reason})")
    recipe = find_recipe(name)
    if steps is not None or epochs is not None or minutes is not None:  # a budget on the command line is the budget
        settings = ["budget.steps=null", "budget.epochs=null", "budget.minutes=null", *settings]
    chosen = {"budget.steps": steps, "budget.epochs": epochs, "budget.minutes": minutes, "training.seed": seed}
    settings = settings + [f"{key}={value}" for key, value in chosen.items() if value is not None]
    return recipe.with_overrides(settings)
