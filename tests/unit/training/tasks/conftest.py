"""A vocabulary with a mask and marks, and texts as ids on disk."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

import pytest

from transduce.data.shards import Pairs, PairWriter
from transduce.text import Tokenizer
from transduce.text.tokenizer import MASK
from transduce.training.tasks.spans import SPANS

LINES = [f"{subject} {verb} the {thing}{mark}" for subject in ("We", "They", "Kofi and Ama", "Nobody")
         for verb in ("painted", "understand", "repaired", "will find") for thing in ("house", "bicycles", "question")
         for mark in (".", "!", "?")]  # fmt: skip


@pytest.fixture(scope="session")
def lines() -> list[str]:
    return LINES


@pytest.fixture(scope="session")
def vocabulary() -> Tokenizer:
    return Tokenizer.learn(LINES, 400, tags=[MASK, *SPANS])


@pytest.fixture
def write_pairs(tmp_path: Path) -> Callable[..., Pairs]:
    """Rows of ids, and what stands beside each: nothing if not given."""

    def write(rows: Iterable[Sequence[int]], beside: Iterable[Sequence[int]] | None = None, name: str = "a") -> Pairs:
        rows = list(rows)
        with PairWriter(tmp_path / name) as writer:
            for ids, other in zip(rows, [[]] * len(rows) if beside is None else beside, strict=True):
                writer.write(ids, other)
        return Pairs(tmp_path / name)

    return write


@pytest.fixture
def texts(vocabulary: Tokenizer, write_pairs: Callable[..., Pairs]) -> Pairs:
    return write_pairs(vocabulary.encode_batch(LINES))
