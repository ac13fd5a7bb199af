"""`transduce classify` and `transduce fill`: name texts, words and pictures; guess masked words."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.errors import InputError

if TYPE_CHECKING:
    import numpy as np

    from transduce.classifier import Classifier, Guess

__all__ = ["classify", "fill", "pictures_of", "texts_of"]

AT_ONCE = 256
Best = Annotated[int, typer.Option(min=1, help="Show so many guesses.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print a JSON object a line, for scripts.")]


def classify(
    model: Annotated[str, typer.Argument(help="Directory of a model for classification, tagging or pictures.")],
    what: Annotated[
        str,
        typer.Argument(
            metavar="TEXT|FILE", help="A text, a file of a text a line, a file of pictures (IDX, .npy), or mnist:17."
        ),
    ],
    best: Best = 3,
    as_json: AsJson = False,
) -> None:
    """Name texts, the words of texts, or pictures, as the model has learned."""
    from transduce.bundle import Bundle, find_model
    from transduce.classifier import Classifier

    classifier = Classifier(Bundle.open(find_model(model)))
    if classifier.bundle.config.task == "image-classification":
        for number, guesses in enumerate(classifier.classify_pictures(pictures_of(what), best)):
            _show({"picture": number}, guesses, as_json)
        return
    texts = texts_of(what)
    while block := list(islice(texts, AT_ONCE)):
        if classifier.bundle.config.task == "tagging":
            _show_tags(classifier, block, as_json)
        else:
            for text, guesses in zip(block, classifier.classify(block, best), strict=True):
                _show({"text": text}, guesses, as_json)


def fill(
    model: Annotated[str, typer.Argument(help="Directory of a masked-language-model.")],
    text: Annotated[str, typer.Argument(help="A text with [MASK] for each word that is to be guessed.")],
    best: Best = 5,
    as_json: AsJson = False,
) -> None:
    """Guess the masked words of a text."""
    from transduce.bundle import Bundle, find_model
    from transduce.classifier import Filler

    filler = Filler(Bundle.open(find_model(model)))
    guesses, filled = filler.fill(text, best), filler.filled(text)
    if as_json:
        masks = [[{"piece": each.label, "probability": each.probability} for each in mask] for mask in guesses]
        typer.echo(json.dumps({"text": text, "filled": filled, "masks": masks}, ensure_ascii=False))
        return
    for mask in guesses:
        typer.echo("   ".join(f"{each.label.strip() or '␣'} {each.probability:.1%}" for each in mask))
    typer.echo(filled)


def pictures_of(what: str) -> np.ndarray:
    """Pictures of a file, or one of the built-in test set: mnist:17."""
    from transduce.data.builtin import BUILTIN, builtin_files
    from transduce.data.images import read_images

    name, _, number = what.partition(":")
    if os.path.exists(what) or name not in BUILTIN or BUILTIN[name].contents != "pictures":
        return read_images(Path(what))
    images = read_images(builtin_files(name, "test")[0])
    if not number:
        return images
    if not number.isdecimal() or int(number) >= len(images):
        raise InputError(
            f"{name} has no picture {number!r}.", remedy=f"They are counted from 0 to {len(images) - 1}: {name}:0."
        )
    return images[int(number) : int(number) + 1]


def texts_of(what: str) -> Iterator[str]:
    """The lines of a file, or the text itself."""
    from transduce.data.corpus import read_lines

    if not os.path.isfile(what):  # which takes a text that is too long for a name for no file
        if not what.strip():
            raise InputError("there is no text.", remedy="Give a text, or a file with one on each line.")
        return iter([what])
    return (line for line in read_lines(Path(what)) if line.strip())


def _show(what: dict[str, Any], guesses: list[Guess], as_json: bool) -> None:
    if as_json:
        labels = [{"label": each.label, "probability": each.probability} for each in guesses]
        typer.echo(json.dumps(what | {"labels": labels}, ensure_ascii=False))
    else:
        typer.echo("   ".join(f"{each.label} {each.probability:.1%}" for each in guesses))


def _show_tags(classifier: Classifier, texts: list[str], as_json: bool) -> None:
    for text, words in zip(texts, classifier.tag(texts), strict=True):
        if as_json:
            shown = [{"word": each.word, "tag": each.tag, "probability": each.probability} for each in words]
            typer.echo(json.dumps({"text": text, "words": shown}, ensure_ascii=False))
        else:
            typer.echo(" ".join(f"{each.word}/{each.tag}" for each in words))
