"""The small sets of data that come with the package, to try everything without a download."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib.resources import files
from pathlib import Path
from typing import Literal

from transduce.data.corpus import Corpus
from transduce.errors import InputError, nearest

__all__ = ["BUILTIN", "BuiltinCorpus", "Contents", "builtin_corpus", "builtin_files", "list_corpora"]

Contents = Literal["pairs", "text", "labelled texts", "pictures", "trees"]


@dataclass(frozen=True, kw_only=True)
class BuiltinCorpus:
    """What a built-in corpus holds and under which terms; `LICENSE.txt` in its folder has them in full."""

    name: str
    pairs: Mapping[str, int]
    """The number of pairs (or texts, pictures, trees) in each split: train, and for some dev and test."""
    source_language: str | None = None
    target_language: str | None = None
    contents: Contents = "pairs"
    recipe: str | None = None
    """What it is trained with if nothing else is asked for; None where that depends on its size."""
    licence: str
    credit: str
    """To be given wherever the corpus is passed on."""
    reverse_of: str | None = None
    """The corpus whose files these are, with source and target exchanged."""

    @property
    def folder(self) -> Path:
        """Where its files are."""
        return Path(str(files("transduce.assets"))) / "corpora" / (self.reverse_of or self.name)

    @property
    def reversed(self) -> BuiltinCorpus:
        """The same pairs the other way round: tatoeba-de-en of tatoeba-en-de."""
        source, target = self.target_language, self.source_language
        name = self.name.replace(f"-{target}-{source}", f"-{source}-{target}")
        return replace(self, name=name, source_language=source, target_language=target, reverse_of=self.name)


_TATOEBA_LICENCE, _TATOEBA = "CC BY 2.0", "tatoeba.org and www.manythings.org/anki"

_CORPORA: dict[str, BuiltinCorpus] = {
    corpus.name: corpus
    for corpus in (
        BuiltinCorpus(
            name="tatoeba-en-de",
            source_language="en",
            target_language="de",
            pairs={"train": 164_884, "dev": 2_166, "test": 2_120},
            licence=_TATOEBA_LICENCE,
            credit=_TATOEBA,
        ),
        BuiltinCorpus(
            name="tatoeba-en-fr",
            source_language="en",
            target_language="fr",
            pairs={"train": 162_481, "dev": 2_094, "test": 1_929},
            licence=_TATOEBA_LICENCE,
            credit=_TATOEBA,
        ),
        BuiltinCorpus(
            name="everyday-en-twi",
            source_language="en",
            target_language="twi",
            pairs={"train": 9_213, "dev": 561},
            licence="MIT",
            credit="Frederick Gyasi and Tim Schlippe, Twi Machine Translation, 2023; tatoeba.org",
        ),
        BuiltinCorpus(
            name="tiny-shakespeare",
            contents="text",
            pairs={"train": 1},
            recipe="language-model",
            licence="Public domain",
            credit="William Shakespeare; Andrej Karpathy, char-rnn",
        ),
        BuiltinCorpus(
            name="banking77",
            contents="labelled texts",
            pairs={"train": 9_996, "test": 3_080},
            recipe="classification",
            licence="CC BY 4.0",
            credit="Casanueva et al., 2020; PolyAI",
        ),
        BuiltinCorpus(
            name="mnist",
            contents="pictures",
            pairs={"train": 6_000, "test": 1_000},
            recipe="image-classification",
            licence="CC BY-SA 3.0",
            credit="Yann LeCun and Corinna Cortes",
        ),
        BuiltinCorpus(
            name="craft-trees",
            contents="trees",
            pairs={"train": 13_208, "dev": 1_435, "test": 1_382},
            recipe="parsing",
            licence="CC BY 3.0",
            credit="The Colorado Richly Annotated Full Text Corpus (CRAFT)",
        ),
    )
}
_REVERSED = [corpus.reversed for corpus in _CORPORA.values() if corpus.contents == "pairs"]
BUILTIN: dict[str, BuiltinCorpus] = _CORPORA | {corpus.name: corpus for corpus in _REVERSED}
"""Built-in corpora by name; pairs of texts are there in both directions."""


def list_corpora() -> list[BuiltinCorpus]:
    """All built-in corpora, each once."""
    return list(_CORPORA.values())


def builtin_corpus(name: str, split: str = "train") -> Corpus:
    """A split of a built-in corpus of pairs: `builtin_corpus("tatoeba-en-de", "dev").pairs()`.

    The other way round it is another name: `builtin_corpus("tatoeba-de-en", "dev")`.
    """
    if name in BUILTIN and BUILTIN[name].contents != "pairs":
        raise InputError(
            f"{name} holds {BUILTIN[name].contents}, not pairs of texts.",
            remedy=f"Train with: transduce train --recipe {BUILTIN[name].recipe} {name} -o my-model",
        )
    source, target = builtin_files(name, split)
    return Corpus(source, target)


def builtin_files(name: str, split: str = "train") -> list[Path]:
    """The files of a split: two of pairs and of pictures with their labels, else one."""
    if name not in BUILTIN:
        raise InputError(f"{name!r} is not a built-in corpus.", remedy=nearest(name, BUILTIN))
    corpus = BUILTIN[name]
    if split not in corpus.pairs:
        raise InputError(f"{name} has no split {split!r}.", remedy=nearest(split, corpus.pairs))
    endings = {
        "pairs": [f".{corpus.source_language}.gz", f".{corpus.target_language}.gz"],
        "text": [".txt.gz"],
        "labelled texts": [".tsv.gz"],
        "pictures": ["-images.idx.gz", "-labels.idx.gz"],
        "trees": [".mrg.xz"],
    }
    return [corpus.folder / f"{split}{ending}" for ending in endings[corpus.contents]]
