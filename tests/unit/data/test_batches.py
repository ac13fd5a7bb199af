"""Every pair once an epoch, within the budget, with little padding, and the same plan for the same seed."""

from __future__ import annotations

import random
import tempfile
from collections.abc import Callable
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.data.batches import BatchPlan, padded
from transduce.data.builtin import builtin_corpus
from transduce.data.shards import Pairs, PairWriter
from transduce.errors import ConfigError
from transduce.text import Tokenizer

Lengths = list[tuple[int, int]]
Make = Callable[[Lengths], Pairs]


def pairs_of(directory: Path, lengths: Lengths) -> Pairs:
    with PairWriter(directory) as writer:
        for source, target in lengths:
            writer.write([4] * source, [5] * target)
    return Pairs(directory)


@pytest.fixture
def make(tmp_path: Path) -> Make:
    return lambda lengths: pairs_of(tmp_path, lengths)


def some(count: int, longest: int = 40) -> Lengths:
    generator = random.Random(7)
    return [(generator.randint(1, longest), generator.randint(1, longest)) for _ in range(count)]


def as_lists(plan: BatchPlan, epoch: int = 0) -> list[list[int]]:
    return [batch.tolist() for batch in plan.epoch(epoch)]


def width(lengths: Lengths, batch: list[int]) -> int:
    """Of the side that is wider once padded."""
    return max(max(lengths[index]) for index in batch)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.integers(0, 30), st.integers(0, 30)), max_size=60),
    st.integers(1, 100),
    st.integers(1, 5),
    st.booleans(),
)
def test_every_pair_comes_once_an_epoch_and_within_the_budget(
    lengths: Lengths, max_tokens: int, window: int, shuffle: bool
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        plan = BatchPlan(pairs_of(Path(directory), lengths), max_tokens, window=window, shuffle=shuffle)
        for epoch in (0, 1):
            batches = as_lists(plan, epoch)
            assert sorted(chain(*batches)) == list(range(len(lengths)))
            for batch in batches:
                assert len(batch) == 1 or len(batch) * width(lengths, batch) <= max_tokens


def test_a_pair_over_the_budget_is_a_batch_alone(make: Make) -> None:
    batches = as_lists(BatchPlan(make([(3, 3), (50, 2), (2, 3), (3, 60)]), max_tokens=20))
    assert sorted(map(sorted, batches)) == [[0, 2], [1], [3]]


def test_the_same_seed_and_epoch_give_the_same_plan(make: Make) -> None:
    pairs = make(some(500))
    assert as_lists(BatchPlan(pairs, 200, seed=3), 2) == as_lists(BatchPlan(pairs, 200, seed=3), 2)


def test_another_epoch_or_seed_gives_another_plan(make: Make) -> None:
    pairs = make(some(500))
    plans = [as_lists(BatchPlan(pairs, 200, seed, window=2), epoch) for seed in (0, 1) for epoch in (0, 1)]
    for number, plan in enumerate(plans):
        assert all(plan != other for other in plans[number + 1 :])
    # Not the same batches in another order either.
    sets = [{frozenset(batch) for batch in plan} for plan in plans]
    assert len(sets[0] & sets[1]) < 0.2 * len(sets[0])


def test_batches_do_not_come_by_length(make: Make) -> None:
    lengths = some(2000)
    widths = [width(lengths, batch) for batch in as_lists(BatchPlan(make(lengths), 200))]
    assert abs(np.corrcoef(widths, range(len(widths)))[0, 1]) < 0.3


def test_without_shuffling_the_plan_is_always_the_same_and_whole(make: Make) -> None:
    plan = BatchPlan(make(some(500)), 200, shuffle=False)
    first = as_lists(plan, 0)
    assert as_lists(plan, 1) == first
    assert sorted(chain(*first)) == list(range(500))


def test_no_pairs_are_no_batches(make: Make) -> None:
    assert as_lists(BatchPlan(make([]), 100)) == []


@pytest.fixture(scope="module")
def tatoeba(tmp_path_factory: pytest.TempPathFactory) -> Pairs:
    """The built-in corpus with a small vocabulary, learned from every eighth pair."""
    pairs = list(builtin_corpus("tatoeba-en-de").pairs())
    tokenizer = Tokenizer.learn((text for pair in pairs[::8] for text in pair), 4000)
    sources, targets = (tokenizer.encode_batch([pair[side] for pair in pairs]) for side in (0, 1))
    directory = tmp_path_factory.mktemp("tatoeba")
    with PairWriter(directory) as writer:
        for source, target in zip(sources, targets, strict=True):
            writer.write(source, target)
    return Pairs(directory)


def test_real_text_is_padded_by_less_than_8_percent(tatoeba: Pairs) -> None:
    real = room = pairs = 0
    for batch in BatchPlan(tatoeba, max_tokens=2048).epoch(0):
        for side in ("source", "target"):
            lengths = [len(tatoeba.ids(side, index)) for index in batch]
            real += sum(lengths)
            room += len(lengths) * max(lengths)
            assert len(lengths) * max(lengths) <= 2048
        pairs += len(batch)
    assert pairs == len(tatoeba)
    assert real == sum(tatoeba.tokens.values())
    assert 1 - real / room < 0.08


def test_batches_are_padded_at_the_end() -> None:
    rows = [np.array(row, dtype=np.uint32) for row in ([7, 8, 9], [], [2**32 - 1])]
    batch = padded(rows, pad_id=0)
    assert batch.tolist() == [[7, 8, 9], [0, 0, 0], [2**32 - 1, 0, 0]]
    assert batch.dtype == np.int64


@pytest.mark.parametrize("setting", [{"max_tokens": 0}, {"max_tokens": -5}, {"window": 0}, {"seed": -1}])
def test_a_setting_that_cannot_work_is_named(make: Make, setting: dict[str, Any]) -> None:
    ((name, value),) = setting.items()
    pairs = make(some(3))
    with pytest.raises(ConfigError, match=rf"{name}={value}"):
        list(BatchPlan(pairs, **{"max_tokens": 100, **setting}).epoch(0))
