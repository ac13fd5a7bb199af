"""`transduce evaluate` for tasks other than translation: accuracy, or perplexity."""

from __future__ import annotations

import json
import math
import os
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from transduce.errors import InputError

if TYPE_CHECKING:
    from transduce.bundle import Bundle
    from transduce.training.recipe import Recipe
    from transduce.training.tasks.prediction import Examples

__all__ = ["measure_examples"]

Z = 1.96
"""Standard deviations of a 95 % interval."""


def measure_examples(bundle: Bundle, source: Path, labels: Path | None, as_json: bool) -> None:
    """Print how good a model is on a file, or on the test set of built-in data."""
    scores = _scores(bundle, source, labels)
    if as_json:
        typer.echo(json.dumps(scores))
    elif "accuracy" in scores:
        low, high = scores["interval"]
        typer.echo(f"accuracy {scores['accuracy']:.2f} % ({low:.2f} to {high:.2f}), of {scores['examples']:,}")
    else:
        loss, tokens = scores["loss"], scores["examples"]
        typer.echo(f"perplexity {scores['perplexity']:.3f}, loss {loss:.4f} per token, {tokens:,} tokens")


def _scores(bundle: Bundle, source: Path, labels: Path | None) -> dict[str, Any]:
    from transduce.cli.line_progress import LineProgress
    from transduce.training.recipe import Recipe
    from transduce.training.tasks.prediction import PredictionTask

    task = bundle.config.task
    recipe, model = Recipe.of({"task": task}), bundle.module()
    # What cannot be removed while it is open, as on Windows, is left to the system.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        if task == "image-classification":
            examples = _pictures(bundle, recipe, source, labels)
        else:
            examples = _texts(bundle, recipe, source, Path(folder) / "measured")
        with LineProgress(lambda: sum(map(len, examples.plan(0)))) as progress:
            measured = PredictionTask(model, recipe, examples, examples).measure(progress.advance)
    scores: dict[str, Any] = {"loss": measured.loss, "examples": measured.asked}
    if task in ("language-model", "masked-language-model"):
        return scores | {"perplexity": math.exp(min(50.0, measured.loss))}
    share = measured.right / max(1, measured.asked)
    around = Z * math.sqrt(share * (1 - share) / max(1, measured.asked))
    interval = [100 * max(0.0, share - around), 100 * min(1.0, share + around)]
    return scores | {"accuracy": 100 * share, "interval": interval}


def _texts(bundle: Bundle, recipe: Recipe, source: Path, directory: Path) -> Examples:
    """Texts, encoded aside with the model's own vocabulary and labels; of built-in ones what is not trained on."""
    from transduce.cli.example_arguments import FORMS, named_files
    from transduce.data.builtin import BUILTIN
    from transduce.data.examples import encode_examples
    from transduce.training.tasks.examples import MaskedTexts, NamedTexts, Windows

    task, vocabulary = bundle.config.task, bundle.vocabularies().source
    name, form = str(source), FORMS[task]
    builtin = BUILTIN.get(name) if not os.path.exists(name) else None
    split = "test" if builtin and "test" in builtin.pairs else "train"
    files, apart = named_files([name], form, split), builtin is not None and split == "train"
    pairs = encode_examples(files, form, vocabulary, bundle.config.labels, directory, held_out=apart)
    if task == "language-model":
        return Windows(pairs, recipe, bundle.config.context or recipe.objective.context, shuffle=False)
    if task == "masked-language-model":
        return MaskedTexts(pairs, recipe, vocabulary, shuffle=False)
    return NamedTexts(pairs, recipe, vocabulary, "sentence" if task == "classification" else "token", shuffle=False)


def _pictures(bundle: Bundle, recipe: Recipe, source: Path, labels: Path | None) -> Examples:
    from transduce.data.builtin import BUILTIN, builtin_files
    from transduce.data.images import Pictures
    from transduce.model.vision import VisionConfig
    from transduce.training.tasks.examples import PictureRows

    files = [source] if labels is None else [source, labels]
    if labels is None and str(source) in BUILTIN and not source.exists():
        files = builtin_files(str(source), "test")
    if len(files) != 2:
        raise InputError("the labels of these pictures are missing.", where=str(source), remedy="Give them as well.")
    pictures = Pictures.read(files[0], files[1])
    if int(pictures.labels.max()) >= len(bundle.config.labels):
        raise InputError(
            f"the label {pictures.labels.max()} is not one that the model knows.",
            where=str(files[1]),
            remedy=f"It knows {len(bundle.config.labels)} labels.",
        )
    return PictureRows(pictures, recipe, VisionConfig.base(**bundle.config.architecture), shuffle=False)
