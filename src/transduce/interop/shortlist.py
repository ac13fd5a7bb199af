"""Vocabulary shortlists: which target pieces a source piece can become, so that the output layer need not try them all.

On a CPU almost half of a decoding step is the product with the whole target vocabulary. A shortlist, learned from which
pieces occur together in training pairs, cuts it to some hundred pieces a batch. CTranslate2 reads it from `vmap.txt`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from transduce.engines.ctranslate2_engine import SHORTLIST
from transduce.errors import InputError
from transduce.storage import write_whole
from transduce.text import Vocabularies

__all__ = ["MOST_PAIRS", "WORTHWHILE", "learn_shortlist", "write_shortlist"]

PER_PIECE = 40
"""Target pieces for each source piece; half as many cost BLEU, twice as many gain none (docs/log.md)."""
ALWAYS = 400
"""The most frequent target pieces, which are on every shortlist."""
MOST_PAIRS = 500_000
"""Pairs to learn from: more change little."""
WORTHWHILE = 2000
"""Target pieces from which a shortlist saves anything."""
AT_ONCE = 4_000_000
"""Co-occurrences that are counted in memory before they are added up."""

Counts = npt.NDArray[np.int64]
IdPairs = Iterable[tuple[Sequence[int] | npt.NDArray[Any], Sequence[int] | npt.NDArray[Any]]]


def learn_shortlist(pairs: IdPairs, vocabularies: Vocabularies) -> list[list[int]]:
    """For each source id the target ids that may come of it, and last, those that always may.

    Ranked by how much two pieces say about each other: count × log(count / count expected by chance).
    """
    width = vocabularies.target.size
    sources, targets = np.zeros(vocabularies.source.size, np.int64), np.zeros(width, np.int64)
    codes, counts, seen = np.empty(0, np.int64), np.empty(0, np.int64), 0
    for found_codes, found_counts, found_sources, found_targets, found in _counted(pairs, len(sources), width):
        codes, places = np.unique(np.concatenate((codes, found_codes)), return_inverse=True)
        counts = np.bincount(places, np.concatenate((counts, found_counts))).astype(np.int64)
        sources, targets, seen = sources + found_sources, targets + found_targets, seen + found
    if not seen:
        raise InputError("there are no pairs to learn a shortlist from.", remedy="Give a corpus.")
    source, target = codes // width, codes % width
    worth = counts * np.log(counts * float(seen) / (sources[source] * targets[target]))
    order = np.lexsort((target, -worth, source))
    ends = np.searchsorted(source[order], np.arange(len(sources) + 1))
    same = {piece: index for index, piece in enumerate(vocabularies.target.all_pieces())}
    lists = []
    for index, piece in enumerate(vocabularies.source.all_pieces()):
        best = target[order[ends[index] : ends[index + 1]][:PER_PIECE]].tolist()
        lists.append(sorted({*best, same.get(piece, 0)}))  # names, numbers and bytes are often copied
    always = np.argsort(-targets, kind="stable")[:ALWAYS].tolist()
    return [*lists, sorted(always)]


def write_shortlist(lists: list[list[int]], vocabularies: Vocabularies, directory: Path) -> None:
    """Put a shortlist into a compiled model's directory, as CTranslate2 reads it."""
    targets = vocabularies.target.all_pieces()
    names = [*vocabularies.source.all_pieces(), ""]  # pieces without a name before them are always candidates
    lines = (f"{name}\t{' '.join(targets[each] for each in row)}\n" for name, row in zip(names, lists, strict=True))
    write_whole(directory / SHORTLIST, "".join(lines).encode())


def _counted(pairs: IdPairs, height: int, width: int) -> Iterator[tuple[Counts, Counts, Counts, Counts, int]]:
    """Portions of: source × width + target of pieces in one pair, how often; pieces of each side; pairs."""
    rest = iter(islice(pairs, MOST_PAIRS))
    while True:
        sides: tuple[list[Counts], list[Counts]] = ([], [])
        together, size = [], 0
        for source_ids, target_ids in rest:
            source, target = (np.unique(np.asarray(ids, np.int64)) for ids in (source_ids, target_ids))
            sides[0].append(source)
            sides[1].append(target)
            together.append((source[:, None] * width + target).ravel())
            size += together[-1].size
            if size >= AT_ONCE:
                break
        if not together:
            return
        codes, counts = np.unique(np.concatenate(together), return_counts=True)
        by_side = [np.bincount(np.concatenate(s), minlength=n) for s, n in zip(sides, (height, width), strict=True)]
        yield codes, counts, by_side[0], by_side[1], len(together)
