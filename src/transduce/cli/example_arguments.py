"""What `train` is given for tasks other than translation: texts, labelled texts, pictures, as a lesson."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.bundle import COMMANDS
from transduce.errors import InputError, nearest

if TYPE_CHECKING:
    from transduce.bundle import Bundle
    from transduce.data.builtin import BuiltinCorpus
    from transduce.data.examples import Form
    from transduce.text import Tokenizer
    from transduce.training.lessons import ExampleLesson, PictureLesson
    from transduce.training.recipe import Recipe
    from transduce.training.run import TrainingRun

__all__ = ["command_for", "example_lesson", "lesson_size", "named_files"]

FORMS: dict[str, Form] = {
    "language-model": "documents",
    "masked-language-model": "texts",
    "text-to-text": "texts",
    "classification": "labelled",
    "tagging": "tagged",
}
CONTENTS = {"documents": ("text",), "labelled": ("labelled texts",), "texts": ("labelled texts", "pairs", "text")}
"""What of the built-in data suits each form."""
TRIES = {
    "language-model": ' "…"',
    "masked-language-model": ' "… [MASK] …"',
    "image-classification": " mnist:0",
}


def example_lesson(
    run: TrainingRun,
    arguments: Sequence[str],
    dev_source: Path | None,
    dev_target: Path | None,
    start: Bundle | None,
    report: Callable[[str, int], None],
) -> ExampleLesson | PictureLesson:
    """The lesson that the arguments and the run's recipe mean."""
    recipe = run.recipe
    if recipe.task == "image-classification":
        return _pictures(recipe, arguments, dev_source, dev_target)
    if dev_target is not None:
        raise InputError(f"{recipe.task} has no --dev-target.", remedy="Give the dev set as --dev-source.")
    from transduce.data.examples import ExamplePreparation
    from transduce.text.tokenizer import MASK
    from transduce.training.lessons import ExampleLesson
    from transduce.training.tasks.spans import SPANS

    form = FORMS[recipe.task]
    tags = SPANS if recipe.objective.span_corruption else (MASK,) if recipe.task == "masked-language-model" else ()
    given = None if start is None else _vocabulary(start, recipe, tags)
    preparation = ExamplePreparation(
        form,
        named_files(arguments, form),
        [dev_source] if dev_source else [],
        vocab_size=recipe.tokenizer.vocab_size,
        kind=recipe.tokenizer.kind,
        protected=recipe.tokenizer.protected,
        tags=tags,
        vocabulary=given.model if given else None,
        longest=recipe.objective.context,
    )
    return ExampleLesson(run.prepare_examples(preparation, report), recipe)


def _vocabulary(start: Bundle, recipe: Recipe, tags: Sequence[str]) -> Tokenizer:
    """That of a model to start from; where each stack has its own, of the one which is taken over."""
    vocabularies = start.vocabularies()
    vocabulary = vocabularies.target if recipe.task == "language-model" else vocabularies.source
    if missing := set(tags) - set(vocabulary.pieces(vocabulary.tags)):
        raise InputError(
            f"the vocabulary of the model to start from has no {min(missing)}, which this recipe needs.",
            where=str(start.path),
            remedy="Start from a model that was trained with such a recipe, or leave out --from.",
        )
    return vocabulary


def named_files(arguments: Sequence[str], form: Form, split: str = "train") -> list[Path]:
    """Files as given, or those of built-in data by name."""
    from transduce.data.builtin import BUILTIN, builtin_files

    if not arguments:
        raise InputError("nothing is given to learn from.", remedy="Give a file, or the name of a built-in corpus.")
    found: list[Path] = []
    for name in arguments:
        if os.path.exists(name) or name not in BUILTIN:
            if not os.path.exists(name) and not Path(name).suffix:
                raise InputError(f"{name!r} is neither a file nor a built-in corpus.", remedy=nearest(name, BUILTIN))
            found.append(Path(name))
        else:
            _check_contents(BUILTIN[name], CONTENTS.get(form, ()))
            found += builtin_files(name, split)
    return found


def _check_contents(corpus: BuiltinCorpus, suited: Sequence[str]) -> None:
    if corpus.contents not in suited:
        raise InputError(
            f"{corpus.name} holds {corpus.contents}, which this task does not learn from.",
            remedy=f"Use --recipe {corpus.recipe or 'small-corpus'}.",
        )


def lesson_size(lesson: ExampleLesson | PictureLesson) -> str:
    """What there is to learn from, in a line."""
    from transduce.training.lessons import PictureLesson

    if isinstance(lesson, PictureLesson):
        return f"{len(lesson.train):,} pictures to train on, {len(lesson.dev):,} to measure on"
    prepared = lesson.prepared
    tokens = lesson.recipe.task == "language-model"
    train, dev = (each.tokens["source"] if tokens else len(each) for each in (prepared.train, prepared.dev))
    labels = f", {len(prepared.labels)} labels" if prepared.labels else ""
    unit = "tokens" if tokens else "texts"
    return f"{train:,} {unit} to train on, {dev:,} to measure on, vocabulary {prepared.vocabulary.size:,}{labels}"


def command_for(task: str, model: Path | str) -> str:
    """What to try with a model."""
    from transduce.bundle import builtin_models

    model = f".{os.sep}{model}" if str(model) in builtin_models() else model
    if task in ("translation", "text-to-text"):
        return f'transduce translate -m {model} "…"'
    return f"transduce {COMMANDS[task]} {model}" + TRIES.get(task, ' "…"')


def _pictures(recipe: Recipe, arguments: Sequence[str], images: Path | None, labels: Path | None) -> PictureLesson:
    from transduce.data.builtin import BUILTIN, builtin_files
    from transduce.data.images import Pictures
    from transduce.training.lessons import PictureLesson

    files = [Path(name) for name in arguments]
    if len(arguments) == 1 and arguments[0] in BUILTIN and not os.path.exists(arguments[0]):
        _check_contents(BUILTIN[arguments[0]], ("pictures",))
        files = builtin_files(arguments[0])
    if len(files) != 2 or (images is None) != (labels is None):
        raise InputError(
            "pictures and their labels are two files.",
            remedy="Give both, as IDX or .npy, or the name of built-in data: mnist.",
        )
    train = Pictures.read(*files)
    if images is None or labels is None:
        return PictureLesson.held_out(train, recipe)
    dev = Pictures.read(images, labels)
    if dev.images.shape[1:] != train.images.shape[1:]:
        raise InputError(
            f"pictures of {list(dev.images.shape[1:])}, while those to learn from are {list(train.images.shape[1:])}.",
            where=str(images),
            remedy="Give pictures of one size.",
        )
    return PictureLesson(train, dev, recipe)
