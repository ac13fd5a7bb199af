"""What commands are given to learn from or to measure on: names, files, weights and languages, as corpora."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.errors import InputError, nearest

if TYPE_CHECKING:
    from transduce.data.corpus import Corpus

__all__ = ["calibrating_corpora", "dev_corpora", "measured_corpus", "training_corpora", "treebanks"]

FORMS = "Give two text files, one .tsv file, or the name of a built-in corpus; or several of these."


def training_corpora(
    arguments: Sequence[str], weights: str | None = None, languages: str | None = None
) -> list[Corpus]:
    """The corpora that the arguments name, in their order, with the weights and languages given beside them."""
    from transduce.text import Direction

    corpora = list(_corpora(list(arguments)))
    if not corpora:
        raise InputError("no text is given to learn from.", remedy=FORMS)
    if weights is not None:
        numbers = [_weight(text) for text in _listed("--weights", weights, corpora)]
        corpora = [replace(corpus, weight=number) for corpus, number in zip(corpora, numbers, strict=True)]
    if languages is not None:
        one_for_all = languages if "," in languages else ",".join([languages] * len(corpora))
        directions = [Direction.parse(text) for text in _listed("--languages", one_for_all, corpora)]
        corpora = [replace(corpus, languages=each) for corpus, each in zip(corpora, directions, strict=True)]
    return corpora


def dev_corpora(
    arguments: Sequence[str], corpora: Sequence[Corpus], source: Path | None, target: Path | None
) -> list[Corpus]:
    """What to measure on: files, or the dev sets of corpora that are all built in; nothing means to hold some out."""
    from transduce.data.builtin import builtin_corpus
    from transduce.data.corpus import Corpus

    if (source is None) != (target is None):
        raise InputError("a dev set has two sides.", remedy="Give both --dev-source and --dev-target.")
    if source is not None:
        return [Corpus(source, target, languages=corpora[0].direction)]
    if not all(_is_builtin(name) for name in arguments):
        return []
    named = zip(arguments, corpora, strict=True)
    found = [replace(builtin_corpus(name, "dev"), languages=corpus.direction) for name, corpus in named]
    return list(dict.fromkeys(found))


def treebanks(
    arguments: Sequence[str], dev_source: Path | None, dev_target: Path | None
) -> tuple[list[Corpus], list[Corpus]]:
    """Trees to learn from and trees to measure on: files, or built-in ones by name."""
    from transduce.data.builtin import builtin_files
    from transduce.data.treebank import Treebank

    if dev_target is not None:
        raise InputError("trees have no --dev-target.", remedy="Give the dev set as --dev-source.")
    if not arguments:
        raise InputError("no trees are given to learn from.", remedy="Give a file with a tree a line, or craft-trees.")
    files = [builtin_files(name) if _is_builtin(name) else [Path(name)] for name in arguments]
    dev = [dev_source] if dev_source else []
    if not dev and all(_is_builtin(name) for name in arguments):
        dev = [path for name in arguments for path in builtin_files(name, "dev")]
    return [Treebank(path) for paths in files for path in paths], [Treebank(path) for path in dev]


def measured_corpus(source: Path, target: Path | None) -> Corpus:
    """What to measure a model on: two files, a .tsv, or a built-in corpus's test set (its dev set if it has none)."""
    from transduce.data.builtin import BUILTIN, builtin_corpus
    from transduce.data.corpus import Corpus, is_tsv

    if target is not None:
        return Corpus(source, target)
    name = str(source)
    if _is_builtin(name):
        return builtin_corpus(name, "test" if "test" in BUILTIN[name].pairs else "dev")
    if is_tsv(source):
        return Corpus(source)
    if not source.exists():
        raise InputError(f"{name!r} is neither a file nor a built-in corpus.", remedy=nearest(name, BUILTIN))
    raise InputError("its translations are missing.", where=name, remedy="Give a second file, line by line.")


def calibrating_corpora(source: Path, target: Path | None) -> list[Corpus]:
    """What to calibrate a model on: two files or a .tsv; of a built-in corpus its dev set, then its test set if any."""
    from transduce.data.builtin import BUILTIN, builtin_corpus

    name = str(source)
    if target is None and _is_builtin(name):
        return [builtin_corpus(name, split) for split in ("dev", "test") if split in BUILTIN[name].pairs]
    return [measured_corpus(source, target)]


def _corpora(arguments: list[str]) -> Iterator[Corpus]:
    from transduce.data.builtin import BUILTIN, builtin_corpus
    from transduce.data.corpus import Corpus, is_tsv

    reason = ""
    while arguments:
        name = arguments.pop(0)
        if _is_builtin(name):
            yield builtin_corpus(name)
        elif is_tsv(Path(name)):
            reason = f" ({name} is taken for a .tsv: its first line has a tab.)"
            yield Corpus(Path(name))
        elif not os.path.exists(name) and not Path(name).suffix:  # more like a misspelt name than a misspelt file
            raise InputError(f"{name!r} is neither a file nor a built-in corpus.", remedy=nearest(name, BUILTIN))
        elif not arguments or _is_builtin(arguments[0]) or ".tsv" in arguments[0].lower():
            raise InputError("one side of a corpus is given without the other.", where=name, remedy=FORMS + reason)
        else:
            yield Corpus(Path(name), Path(arguments.pop(0)))


def _is_builtin(name: str) -> bool:
    from transduce.data.builtin import BUILTIN

    return name in BUILTIN and not os.path.exists(name)


def _listed(option: str, text: str, corpora: Sequence[Corpus]) -> list[str]:
    """The parts of a list with commas, of which there must be one for each corpus."""
    parts = [part.strip() for part in text.split(",")]
    if len(parts) != len(corpora):
        names = ", ".join(corpus.name for corpus in corpora)
        raise InputError(
            f"{option} {text} has {len(parts)} parts, but the corpora are {len(corpora)}: {names}.",
            remedy="Give one for each, in their order, with commas between.",
        )
    return parts


def _weight(text: str) -> float:
    try:
        return float(text)
    except ValueError as error:
        raise InputError(f"the weight {text!r} is not a number.", remedy="Write --weights 1,3 or 1,0.5.") from error
