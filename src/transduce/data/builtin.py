"""The small corpora that come with the package, to try everything without a download."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path

from transduce.data.corpus import Corpus
from transduce.errors import InputError, nearest

__all__ = ["BUILTIN", "BuiltinCorpus", "builtin_corpus", "list_corpora"]


@dataclass(frozen=True, kw_only=True)
class BuiltinCorpus:
    """What a built-in corpus holds and under which terms; `LICENSE.txt` in its folder has them in full."""

    name: str
    source_language: str
    target_language: str
    pairs: Mapping[str, int]
    """The number of pairs in each split: train, dev and for some test."""
    licence: str
    credit: str
    """To be given wherever the corpus is passed on."""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return Path(str(files("transduce.assets"))) / "corpora" / self.name


_TATOEBA = {"licence": "CC BY 2.0", "credit": "tatoeba.org and www.manythings.org/anki"}

BUILTIN: dict[str, BuiltinCorpus] = {
    corpus.name: corpus
    for corpus in (
        BuiltinCorpus(
            name="tatoeba-en-de",
            source_language="en",
            target_language="de",
            pairs={"train": 164_884, "dev": 2_166, "test": 2_120},
            **_TATOEBA,
        ),
        BuiltinCorpus(
            name="tatoeba-en-fr",
            source_language="en",
            target_language="fr",
            pairs={"train": 162_481, "dev": 2_094, "test": 1_929},
            **_TATOEBA,
        ),
        BuiltinCorpus(
            name="everyday-en-twi",
            source_language="en",
            target_language="twi",
            pairs={"train": 9_213, "dev": 561},
            licence="MIT",
            credit="Frederick Gyasi and Tim Schlippe, Twi Machine Translation, 2023; tatoeba.org",
        ),
    )
}


def list_corpora() -> list[BuiltinCorpus]:
    """All built-in corpora."""
    return list(BUILTIN.values())


def builtin_corpus(name: str, split: str = "train") -> Corpus:
    """A split of a built-in corpus: `builtin_corpus("tatoeba-en-de", "dev").pairs()`."""
    if name not in BUILTIN:
        raise InputError(f"{name!r} is not a built-in corpus.", remedy=nearest(name, BUILTIN))
    corpus = BUILTIN[name]
    if split not in corpus.pairs:
        raise InputError(f"{name} has no split {split!r}.", remedy=nearest(split, corpus.pairs))
    return Corpus(
        corpus.folder / f"{split}.{corpus.source_language}.gz",
        corpus.folder / f"{split}.{corpus.target_language}.gz",
    )
