"""Ids come back from disk as they went in, and what was not written to its end is not read."""

from __future__ import annotations

import json
import random
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.shards import Pairs, PairWriter, Span
from transduce.errors import InputError

Sequences = list[tuple[list[int], list[int]]]

SIDES = ("source", "target")
SOME: Sequences = [([5, 6, 7], [8]), ([], [9, 10]), ([11], []), ([12, 13], [14, 15, 16, 17])]
FILES = ["source.ids", "source.ends", "target.ids", "target.ends", "pairs.json"]

sentences = st.lists(st.integers(0, 2**32 - 1), max_size=12)


def write(directory: Path, pairs: Sequences) -> Path:
    with PairWriter(directory) as writer:
        for source, target in pairs:
            writer.write(source, target)
    return directory


def read(pairs: Pairs, order: list[int]) -> Sequences:
    return [(pairs.ids("source", index).tolist(), pairs.ids("target", index).tolist()) for index in order]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(sentences, sentences), max_size=20), st.randoms(use_true_random=False))
def test_pairs_come_back_as_written_in_any_order(written: Sequences, generator: random.Random) -> None:
    order = list(range(len(written)))
    generator.shuffle(order)
    with tempfile.TemporaryDirectory() as directory:
        pairs = Pairs(write(Path(directory), written))
        assert len(pairs) == len(written)
        assert read(pairs, order) == [written[index] for index in order]
        for number, side in enumerate(SIDES):
            expected = [len(written[index][number]) for index in order]
            assert pairs.lengths(side, np.array(order, dtype=np.int64)).tolist() == expected
            assert pairs.tokens[side] == sum(expected)


@pytest.mark.parametrize("index", [0, 1, 2**16, 2**31, 2**32 - 1])
def test_every_id_of_32_bits_is_kept(tmp_path: Path, index: int) -> None:
    assert read(Pairs(write(tmp_path, [([index], [index, 0])])), [0]) == [([index], [index, 0])]


@pytest.mark.parametrize("index", [-1, 2**32])
def test_an_id_that_does_not_fit_is_refused_not_wrapped(tmp_path: Path, index: int) -> None:
    with pytest.raises(OverflowError):
        write(tmp_path, [([index], [1])])


def test_pairs_can_be_given_as_streams(tmp_path: Path) -> None:
    with PairWriter(tmp_path) as writer:
        writer.write(iter([1, 2]), (index for index in [3]))
    assert read(Pairs(tmp_path), [0]) == [([1, 2], [3])]


def test_sentences_of_a_side_are_stored_apart_from_the_other_side(tmp_path: Path) -> None:
    """The format is documented, so that others can read it: ids end to end, and where each sentence ends."""
    write(tmp_path, SOME)
    assert np.fromfile(tmp_path / "source.ids", "<u4").tolist() == [5, 6, 7, 11, 12, 13]
    assert np.fromfile(tmp_path / "source.ends", "<u8").tolist() == [3, 3, 4, 6]
    assert np.fromfile(tmp_path / "target.ends", "<u8").tolist() == [1, 3, 3, 7]


def test_pairs_know_which_corpus_they_came_from_and_its_weight(tmp_path: Path) -> None:
    with PairWriter(tmp_path) as writer:
        for pairs, weight in ((2, 1.0), (0, 4.0), (3, 0.5)):
            for _ in range(pairs):
                writer.write([4], [5])
            writer.end_corpus(weight)
    assert Pairs(tmp_path).spans == [Span(0, 2, 1.0), Span(2, 2, 4.0), Span(2, 5, 0.5)]


def test_pairs_of_no_named_corpus_weigh_one(tmp_path: Path) -> None:
    assert Pairs(write(tmp_path / "some", SOME)).spans == [Span(0, 4, 1.0)]
    assert Pairs(write(tmp_path / "none", [])).spans == []


@pytest.mark.parametrize("spans", [[], [[0, 3, 1.0]], [[0, 2, 1.0], [3, 4, 1.0]], [[0, 4, 1, 1]], 3, None])
def test_spans_that_do_not_cover_the_pairs_are_refused(tmp_path: Path, spans: Any) -> None:
    summary = json.loads((write(tmp_path, SOME) / "pairs.json").read_text()) | {"spans": spans}
    (tmp_path / "pairs.json").write_text(json.dumps(summary))
    with pytest.raises(InputError, match="Delete the directory"):
        Pairs(tmp_path)


@pytest.mark.parametrize(
    ("size", "weight", "times"),
    [(10, 1, (1, 0)), (10, 3, (3, 0)), (10, 0.5, (0, 5)), (10, 2.5, (2, 5)), (10, 1.1, (1, 1)), (10, 0.01, (0, 1)),
     (1, 0.001, (0, 1)), (3, 0.999, (0, 3)), (0, 0.5, (0, 0)), (0, 2, (2, 0))],
)  # fmt: skip
def test_a_weight_is_so_many_whole_times_and_a_share(size: int, weight: float, times: tuple[int, int]) -> None:
    assert Span(7, 7 + size, weight).times() == times


def test_nothing_is_readable_before_the_writer_is_done(tmp_path: Path) -> None:
    with PairWriter(tmp_path / "new") as writer:
        writer.write([1], [2])
        with pytest.raises(InputError, match="missing or incomplete"):
            Pairs(tmp_path / "new")


@pytest.mark.parametrize("before", [None, SOME], ids=["new", "over an older one"])
def test_an_interrupted_writer_leaves_nothing_readable(tmp_path: Path, before: Sequences | None) -> None:
    if before:
        write(tmp_path, before)

    def interrupted() -> Iterator[int]:
        yield 1
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), PairWriter(tmp_path) as writer:
        writer.write([1], interrupted())
    with pytest.raises(InputError, match="missing or incomplete") as caught:
        Pairs(tmp_path)
    assert caught.value.where == str(tmp_path)


def test_a_directory_can_be_written_again(tmp_path: Path) -> None:
    write(tmp_path, SOME)
    assert read(Pairs(write(tmp_path, SOME[1:2])), [0]) == SOME[1:2]


@pytest.mark.parametrize("cut", [1, 8, 10_000])
@pytest.mark.parametrize("name", FILES)
def test_a_truncated_file_is_refused_with_where_and_remedy(tmp_path: Path, name: str, cut: int) -> None:
    write(tmp_path, SOME)
    contents = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(contents[: max(0, len(contents) - cut)])
    with pytest.raises(InputError) as caught:
        Pairs(tmp_path)
    assert str(tmp_path) in (caught.value.where or "")
    assert "Delete" in (caught.value.remedy or "")


@pytest.mark.parametrize("name", FILES)
def test_a_missing_file_is_refused_with_where(tmp_path: Path, name: str) -> None:
    write(tmp_path, SOME)
    (tmp_path / name).unlink()
    with pytest.raises(InputError) as caught:
        Pairs(tmp_path)
    assert str(tmp_path) in (caught.value.where or "")
