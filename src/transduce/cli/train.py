"""`transduce train`: from text files to a translator, or to one of its kin."""

from __future__ import annotations

import os
import signal
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.cli.bulk import RayAddressOption
from transduce.errors import ConfigError

if TYPE_CHECKING:
    from rich.console import Console

    from transduce.bundle import Bundle
    from transduce.data.corpus import Corpus
    from transduce.data.encoding import Hands
    from transduce.data.prepare import Prepared
    from transduce.text import Direction
    from transduce.training.ranks import Ranks
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
            "tatoeba-en-de), or several of these; then settings to change, such as training.warmup=400. Other tasks "
            "than translation take other files: see --recipe.",
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
    recipe: Annotated[
        str | None,
        typer.Option(
            help="Name of a recipe, or a YAML file; else by corpus size. Its task says what the files are: text "
            "(language-model, masked-language-model), label TAB text (classification), words TAB tags (tagging), "
            "pictures and labels (image-classification), trees (parsing)."
        ),
    ] = None,
    start_from: Annotated[
        str | None,
        typer.Option(
            "--from", help="A model to start from: to adapt it to other text, or to fine-tune what was pre-trained."
        ),
    ] = None,
    steps: Annotated[int | None, typer.Option(help="Stop after so many updates.")] = None,
    epochs: Annotated[int | None, typer.Option(help="Stop after seeing the corpus so many times.")] = None,
    minutes: Annotated[float | None, typer.Option(help="Stop after so many minutes of training.")] = None,
    seed: Annotated[int | None, typer.Option(help="Of everything random.")] = None,
    allow_identical: Annotated[
        bool, typer.Option("--allow-identical", help="Source and target may be the same text (toy tasks).")
    ] = False,
    devices: Annotated[
        int, typer.Option(min=1, help="Train in so many processes of this machine; on many machines, see torchrun.")
    ] = 1,
    shard: Annotated[
        bool,
        typer.Option("--shard", help="Each device keeps a share of the weights: for models that outgrow one."),
    ] = False,
    prepare_cluster: Annotated[
        Literal["none", "ray"], typer.Option(help="ray: the text is encoded by the processes of a Ray cluster.")
    ] = "none",
    ray_address: RayAddressOption = None,
    rank_timeout: Annotated[
        float, typer.Option(min=1, help="Seconds after which a device that does not answer is given up.")
    ] = 300,
) -> None:
    """Train a translator. Stop it when you like: the same command goes on where it was.

    The batch is the same however many devices share it, and so is the result. On several machines, start the same
    command on each with torchrun -m transduce train …; all must see the same output directory.
    """
    from rich.console import Console

    if devices > 1 and "WORLD_SIZE" not in os.environ:
        from transduce.cli.devices import run_on_devices

        raise typer.Exit(run_on_devices(devices))
    files, settings = _split(corpus)
    order = _Order(
        files=files,
        settings=settings,
        output=output,
        weights=weights,
        languages=languages,
        dev_source=dev_source,
        dev_target=dev_target,
        recipe=recipe,
        start=_opened(start_from),
        budget={"budget.steps": steps, "budget.epochs": epochs, "budget.minutes": minutes},
        seed=seed,
        allow_identical=allow_identical,
        shard=shard,
        hands=_hands(prepare_cluster, ray_address),
    )
    with Console(quiet=os.environ.get("RANK", "0") != "0").status("Starting …"):
        from transduce.training.ranks import joined_ranks
    with joined_ranks(rank_timeout) as ranks:
        order.carry_out(ranks, Console(quiet=not ranks.leads))


@dataclass(frozen=True)
class _Order:
    """What the command line asks for."""

    files: list[str]
    settings: list[str]
    output: Path
    weights: str | None
    languages: str | None
    dev_source: Path | None
    dev_target: Path | None
    recipe: str | None
    start: Bundle | None
    budget: dict[str, int | None] | dict[str, float | None]
    seed: int | None
    allow_identical: bool
    shard: bool
    hands: Hands

    def carry_out(self, ranks: Ranks, console: Console) -> None:
        """Train; the leader of the ranks writes the model and says so."""
        with console.status("Starting …"):
            from transduce.training.recipes import find_recipe
        name = self.recipe or _usual_recipe(self.files, self.start)
        chosen = find_recipe(name).with_overrides(self.settings) if name is not None else None
        if name is not None and chosen is not None and chosen.learns_from_examples:
            self._learn_from_examples(self._resolved(name), ranks, console)
        else:
            self._learn_from_pairs(name, chosen is not None and chosen.task == "parsing", ranks, console)

    def _learn_from_examples(self, recipe: Recipe, ranks: Ranks, console: Console) -> None:
        from transduce.cli.example_arguments import example_lesson, lesson_size
        from transduce.cli.training_display import TrainingDisplay
        from transduce.training.run import TrainingRun

        if self.weights or self.languages:
            raise ConfigError("--weights and --languages are for translation.", remedy="Leave them out.")
        if self.hands.cluster != "none":
            raise ConfigError("--prepare-cluster is for translation and parsing.", remedy="Leave it out.")
        run = TrainingRun(self.output, recipe, ranks, self.shard)
        display, stop = TrainingDisplay(console, recipe.budget), _StopSignal()
        with display.preparation() as report:
            lesson = example_lesson(run, self.files, self.dev_source, self.dev_target, self.start, report)
        display.say(lesson_size(lesson))
        with stop, display.training():
            finished = run.train(lesson, display.show, stop.asked, self.start)
        if finished.complete and ranks.leads:
            run.write_bundle(lesson)
            self._say_where(recipe, console)

    def _learn_from_pairs(self, name: str | None, parses: bool, ranks: Ranks, console: Console) -> None:
        from transduce.cli.adaptation import report_adaptation
        from transduce.cli.calibrate import calibrate_on_dev, choose_length_on_dev
        from transduce.cli.corpus_arguments import dev_corpora, training_corpora, treebanks
        from transduce.cli.training_display import TrainingDisplay
        from transduce.training.lessons import TranslationLesson
        from transduce.training.run import TrainingRun

        if parses:
            corpora, dev = treebanks(self.files, self.dev_source, self.dev_target)
        else:
            corpora = training_corpora(self.files, self.weights, self.languages)
            dev = dev_corpora(self.files, corpora, self.dev_source, self.dev_target)
        recipe = self._resolved(name or _recipe_by_size(console, corpora))
        directions = [each.direction for each in corpora]
        _advise_tags(console, recipe, directions)
        run = TrainingRun(self.output, recipe, ranks, self.shard)
        display, stop = TrainingDisplay(console, recipe.budget), _StopSignal()
        with display.preparation() as report:
            vocabularies = self.start.vocabularies() if self.start else None
            prepared = run.prepare(corpora, dev, self.allow_identical, report, vocabularies, self.hands)
        display.describe(prepared)
        pairs = TranslationLesson(prepared, recipe, directions)
        with stop, display.training():
            finished = run.train(pairs, display.show, stop.asked, self.start)
        if not finished.complete or not ranks.leads:
            return
        bundle = run.write_bundle(pairs)
        if recipe.task != "parsing" and _compile(bundle, console):
            _add_shortlist(bundle, prepared, console)
        if recipe.decoding.alpha == "auto" and recipe.decoding.beam > 1 and recipe.task != "parsing":
            bundle = choose_length_on_dev(bundle, prepared, console)
        if recipe.task != "parsing":
            calibrate_on_dev(bundle, prepared, console)
        if self.start is not None:
            report_adaptation(console, self.start, bundle, prepared)
        self._say_where(recipe, console)

    def _resolved(self, name: str) -> Recipe:
        """A recipe with what the command line says, and with the shape of a model to start from."""
        from transduce.training.recipes import find_recipe

        recipe, settings = find_recipe(name), self.settings
        if any(value is not None for value in self.budget.values()):  # a budget on the command line is the budget
            settings = [*(f"{key}=null" for key in self.budget), *settings]
        chosen = self.budget | {"training.seed": self.seed}
        settings = settings + [f"{key}={value}" for key, value in chosen.items() if value is not None]
        if self.start is None:
            return recipe.with_overrides(settings)
        shaped = recipe.with_overrides([each for each in settings if not each.startswith("model.")])
        shaped = shaped.shaped_as(self.start.config.network, self.start.config.architecture)
        return shaped.with_overrides([each for each in settings if each.startswith("model.")])

    def _say_where(self, recipe: Recipe, console: Console) -> None:
        from transduce.cli.example_arguments import command_for

        console.print(f"The model is in [bold]{self.output}[/bold]. Try: {command_for(recipe.task, self.output)}")


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


def _hands(cluster: Literal["none", "ray"], address: str | None) -> Hands:
    """Who turns a large corpus into ids."""
    from transduce.data.encoding import Hands
    from transduce.processes import cores

    if address is not None and cluster != "ray":
        raise ConfigError("--ray-address is for Ray.", remedy="Add: --prepare-cluster ray")
    return Hands(cores(), cluster, address)


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


def _opened(model: str | None) -> Bundle | None:
    """The model to start from."""
    from transduce.bundle import Bundle, find_model

    return None if model is None else Bundle.open(find_model(model))


def _usual_recipe(files: list[str], start: Bundle | None) -> str | None:
    """What a built-in set of data is trained with, or what suits a translator that is to be adapted."""
    from transduce.data.builtin import BUILTIN

    usual = [BUILTIN[name].recipe for name in files if name in BUILTIN and not os.path.exists(name)]
    if usual and usual[0] is not None:
        return usual[0]
    return "adaptation" if start is not None and start.config.task == "translation" else None


def _recipe_by_size(console: Console, corpora: list[Corpus]) -> str:
    from transduce.training.recipes import recipe_for

    with console.status("Counting pairs …"):
        pairs = sum(1 for each in corpora for _ in each.pairs(allow_identical=True))
    name, reason = recipe_for(pairs)
    console.print(f"Recipe [bold]{name}[/bold] ({reason})")
    return name
