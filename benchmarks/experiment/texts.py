"""The texts of an experiment: what is trained on, perhaps a part of it, and what is measured on."""

from __future__ import annotations

import heapq
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from experiment.grid import Grid
from transduce.data.builtin import BUILTIN, builtin_files
from transduce.data.corpus import Corpus, Pair
from transduce.errors import InputError, nearest
from transduce.storage import write_whole
from transduce.text.languages import language_of

__all__ = ["Texts", "find_texts", "subset"]


@dataclass(frozen=True)
class Texts:
    """Corpora by what they are for."""

    train: Corpus
    measured: dict[str, Corpus]
    """dev, and test if there is one."""


def find_texts(grid: Grid, data: Path, output: Path) -> Texts:
    """The files that a grid names, relative to `data`; part of a corpus is written to `output` once."""
    named: dict[str, list[Path]] = {}
    if isinstance(grid.corpus, str):
        if grid.corpus not in BUILTIN:
            raise InputError(f"{grid.corpus!r} is not a built-in corpus.", remedy=nearest(grid.corpus, BUILTIN))
        named = {split: builtin_files(grid.corpus, split) for split in BUILTIN[grid.corpus].pairs}
    else:
        named["train"] = [data / name for name in grid.corpus]
    for split, files in (("dev", grid.dev), ("test", grid.test)):
        if files is not None:
            named[split] = [data / name for name in files]
    for path in (path for files in named.values() for path in files):
        if not path.is_file():
            raise InputError("there is no such file.", where=str(path), remedy="Say with --data where the files are.")
    if grid.pairs is not None:
        named["train"] = _written(Corpus(*named["train"]), grid.pairs, output)
    corpora = {split: Corpus(*files) for split, files in named.items()}
    return Texts(corpora["train"], {split: corpora[split] for split in ("dev", "test") if split in corpora})


def subset(pairs: list[Pair], count: int) -> list[Pair]:
    """So many of the pairs, as if shuffled, but the same on every machine; the fewer are the first of the more."""

    def drawn(index: int) -> bytes:
        pair = pairs[index]
        return blake2b(f"{index}\t{pair.source}\t{pair.target}".encode(), digest_size=8).digest()

    return [pairs[index] for index in heapq.nsmallest(count, range(len(pairs)), key=drawn)]


def _written(corpus: Corpus, count: int, output: Path) -> list[Path]:
    sides = (corpus.source, corpus.target)
    endings = [language_of(path) or side for path, side in zip(sides, ("source", "target"), strict=True) if path]
    paths = [output / "corpus" / f"train-{count}.{ending}" for ending in endings]
    pairs = list(corpus.pairs(allow_identical=True))
    if count > len(pairs):
        raise InputError(
            f"the corpus has {len(pairs):,} pairs, not {count:,}.", where=corpus.name, remedy="Ask for less."
        )
    paths[0].parent.mkdir(parents=True, exist_ok=True)
    chosen = subset(pairs, count)
    for path, lines in zip(paths, zip(*chosen, strict=True), strict=True):
        text = "".join(f"{line}\n" for line in lines).encode()
        if not path.is_file() or path.read_bytes() != text:  # a run may be reading it
            write_whole(path, text)
    return paths
