"""What an exported model is compared on: a file that is given, or built-in data that suits its task."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from transduce.errors import InputError

if TYPE_CHECKING:
    from transduce.bundle import Bundle

__all__ = ["NOTHING", "spread", "verified_text"]

NOTHING = {
    "translation": "no built-in corpus has its languages",
    "parsing": "no built-in corpus has its languages",
    "image-classification": "no built-in pictures have its size",
}
"""Why there can be nothing to compare on; of other tasks there always is something."""
LONGEST_LINE = 20
"""Characters of a line from which on it is a text to go on with, and not the name of who speaks it."""

Verified = tuple[list[Any], list[str] | None]
"""Texts or pictures, and of some texts references."""


def verified_text(bundle: Bundle, given: Path | None) -> Verified | None:
    """What to compare a model on; None where there is nothing."""
    task = bundle.config.task
    if task == "image-classification":
        return _pictures(bundle, given)
    if task not in ("translation", "text-to-text", "parsing"):
        return (_lines(given) if given is not None else _texts(task)), None
    return _pairs(bundle, given)


def spread(sources: list[Any], references: list[str] | None, most: int) -> Verified:
    """At most so many of them, from all over."""
    count = min(most, len(sources))
    chosen = [place * len(sources) // count for place in range(count)]
    return [sources[index] for index in chosen], references and [references[index] for index in chosen]


def _lines(path: Path) -> list[str]:
    from transduce.data.corpus import read_lines

    lines = [line for line in read_lines(path) if line.strip()]
    if not lines:
        raise InputError("there is no text to compare on.", where=str(path), remedy="Give another file.")
    return lines


def _texts(task: str) -> list[str]:
    """Texts of built-in data: verse for what writes on, else what people ask their bank."""
    from transduce.data.builtin import builtin_files

    if task == "language-model":
        return [line for line in _lines(builtin_files("tiny-shakespeare")[0]) if len(line) >= LONGEST_LINE]
    return [line.split("\t")[-1] for line in _lines(builtin_files("banking77", "test")[0])]


def _pictures(bundle: Bundle, given: Path | None) -> Verified | None:
    from transduce.data.builtin import builtin_files
    from transduce.data.images import read_images

    images = read_images(given if given is not None else builtin_files("mnist", "test")[0])
    size = tuple(bundle.config.architecture.get(name) for name in ("height", "width", "channels"))
    if images.shape[1:] == size and len(images):
        return list(images), None
    if given is None:
        return None
    raise InputError(
        f"these pictures are {list(images.shape[1:])}, and the model reads {list(size)}.",
        where=str(given),
        remedy="Give pictures of its size.",
    )


def _pairs(bundle: Bundle, given: Path | None) -> Verified | None:
    from transduce.cli.corpus_arguments import measured_corpus
    from transduce.data.builtin import BUILTIN, builtin_corpus
    from transduce.data.corpus import is_tsv

    if given is not None:
        if given.is_file() and not is_tsv(given):
            return _lines(given), None
        corpus = measured_corpus(given, None)
    else:
        languages = (bundle.config.source_language, bundle.config.target_language)
        corpora = [one for one in BUILTIN.values() if one.contents == "pairs"]
        names = [one.name for one in corpora if (one.source_language, one.target_language) == languages]
        if not names and bundle.config.task == "text-to-text":
            return _texts("text-to-text"), None
        if not names:
            return None
        corpus = builtin_corpus(names[0], "dev")
    pairs = list(corpus.pairs(allow_identical=True))
    return [pair.source for pair in pairs], [pair.target for pair in pairs]
