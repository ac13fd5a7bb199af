"""`transduce train`: from two text files to a translator."""

from __future__ import annotations

import signal
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.errors import ConfigError, InputError

if TYPE_CHECKING:
    from rich.console import Console

    from transduce.bundle import Bundle
    from transduce.data.corpus import Corpus
    from transduce.training.recipe import Recipe

__all__ = ["train"]


def train(
    corpus: Annotated[
        list[str],
        typer.Argument(
            metavar="SOURCE TARGET | TSV | CORPUS [key=value …]",
            help="Two text files, line by line translations of each other (or one .tsv, or a built-in corpus such as "
            "tatoeba-en-de); then settings to change, such as training.warmup=400.",
        ),
    ],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory of the model; also where a run goes on.")],
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

    from transduce.cli.training_display import TrainingDisplay

    console = Console()
    with console.status("Starting …"):
        from transduce.training.run import TrainingRun

    files, settings = _split(corpus)
    training, given_dev, languages = _corpora(files, dev_source, dev_target)
    resolved = _recipe(console, recipe, settings, training, steps, epochs, minutes, seed)
    run = TrainingRun(output, resolved)
    display = TrainingDisplay(console, resolved.budget)
    with display.preparation() as report:
        prepared = run.prepare(training, given_dev, allow_identical, report)
    display.describe(prepared)
    stop = _StopSignal()
    with stop, display.training():
        finished = run.train(prepared, display.show, stop.asked)
    if finished.complete:
        _compile(run.write_bundle(prepared, languages), console)
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


def _compile(bundle: Bundle, console: Console) -> None:
    """Compile the model for CTranslate2, which translates faster; what it has no counterpart of stays with PyTorch."""
    from transduce.interop.ctranslate2 import compile_model

    try:
        compile_model(bundle.model(), bundle.tokenizer(), bundle.path / "ctranslate2")
    except ConfigError as error:
        console.print(f"Not compiled: {error}")


def _split(arguments: list[str]) -> tuple[list[str], list[str]]:
    """Files and settings: a setting has an = and is not a file."""
    settings = [each for each in arguments if "=" in each and not Path(each).exists()]
    return [each for each in arguments if each not in settings], settings


def _corpora(
    files: list[str], dev_source: Path | None, dev_target: Path | None
) -> tuple[Corpus, Corpus | None, tuple[str | None, str | None]]:
    from transduce.data.builtin import BUILTIN, builtin_corpus
    from transduce.data.corpus import Corpus

    if (dev_source is None) != (dev_target is None):
        raise InputError("a dev set has two sides.", remedy="Give both --dev-source and --dev-target.")
    dev = Corpus(dev_source, dev_target) if dev_source else None
    if len(files) == 1 and not Path(files[0]).exists() and ".tsv" not in files[0]:
        training = builtin_corpus(files[0])
        described = BUILTIN[files[0]]
        return training, dev or builtin_corpus(files[0], "dev"), (described.source_language, described.target_language)
    if len(files) == 1 and ".tsv" in files[0]:
        return Corpus(Path(files[0])), dev, (None, None)
    if len(files) != 2:
        raise InputError(
            f"{len(files)} files given: {', '.join(files) or 'none'}.",
            remedy="Give two text files, one .tsv file, or the name of a built-in corpus.",
        )
    source, target = (Path(name) for name in files)
    return Corpus(source, target), dev, (_language(source), _language(target))


def _language(path: Path) -> str | None:
    """A language code at the end of a file's name, as in train.de or train.de.gz."""
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix not in (".gz", ".xz", ".txt")]
    return suffixes[-1] if suffixes and suffixes[-1].isalpha() and 2 <= len(suffixes[-1]) <= 3 else None


def _recipe(
    console: Console,
    name: str | None,
    settings: list[str],
    training: Corpus,
    steps: int | None,
    epochs: int | None,
    minutes: float | None,
    seed: int | None,
) -> Recipe:
    from transduce.training.recipes import find_recipe, recipe_for

    if name is None:
        with console.status("Counting pairs …"):
            pairs = sum(1 for _ in training.pairs(allow_identical=True))
        name, reason = recipe_for(pairs)
        console.print(f"Recipe [bold]{name}[/bold] ({reason})")
    recipe = find_recipe(name)
    if steps is not None or epochs is not None or minutes is not None:  # a budget on the command line is the budget
        settings = ["budget.steps=null", "budget.epochs=null", "budget.minutes=null", *settings]
    chosen = {"budget.steps": steps, "budget.epochs": epochs, "budget.minutes": minutes, "training.seed": seed}
    settings = settings + [f"{key}={value}" for key, value in chosen.items() if value is not None]
    return recipe.with_overrides(settings)
