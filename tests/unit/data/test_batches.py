"""Every pair once an epoch, within the budget, with little padding, and the same plan for the same seed."""

from __future__ import annotations

import json
import random
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Callable
from itertools import chain, islice
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
    st.sampled_from([0, 7]),
)
def test_every_pair_comes_once_an_epoch_and_within_the_budget(
    lengths: Lengths, max_tokens: int, window: int, shuffle: bool, extra: int
) -> None:
    with tempfile.TemporaryDirectory() as directory:
        pairs = pairs_of(Path(directory), lengths)
        plan = BatchPlan(pairs, max_tokens, window=window, shuffle=shuffle, extra=extra)
        for epoch in (0, 1):
            batches = as_lists(plan, epoch)
            assert sorted(chain(*batches)) == list(range(len(lengths)))
            for batch in batches:
                assert len(batch) == 1 or len(batch) * (width(lengths, batch) + extra) <= max_tokens


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


# Weights of corpora


def weighted(directory: Path, *corpora: tuple[int, float]) -> Pairs:
    """Corpora of so many pairs and of such weight, with lengths from 1 to 40."""
    lengths = iter(some(sum(count for count, _ in corpora)))
    with PairWriter(directory) as writer:
        for count, weight in corpora:
            for source, target in islice(lengths, count):
                writer.write([4] * source, [5] * target)
            writer.end_corpus(weight)
    return Pairs(directory)


def times_seen(pairs: Pairs, epoch: int = 0) -> list[int]:
    counts = Counter(chain(*as_lists(BatchPlan(pairs, 200), epoch)))
    return [counts[index] for index in range(len(pairs))]


def test_a_pair_is_seen_as_often_as_its_corpus_weighs(tmp_path: Path) -> None:
    seen = times_seen(weighted(tmp_path, (100, 1), (20, 3), (50, 0.5), (40, 2.25)))
    assert seen[:100] == [1] * 100
    assert seen[100:120] == [3] * 20
    assert sorted(seen[120:170]) == [0] * 25 + [1] * 25
    assert sorted(seen[170:]) == [2] * 30 + [3] * 10


def test_a_share_of_a_corpus_is_another_one_each_epoch_and_in_time_all_of_it(tmp_path: Path) -> None:
    pairs = weighted(tmp_path, (10, 1), (60, 0.5))
    epochs = [times_seen(pairs, epoch) for epoch in range(12)]
    assert len({tuple(seen) for seen in epochs}) == 12
    together = [sum(counts) for counts in zip(*epochs, strict=True)]
    assert min(together[10:]) > 0
    assert sum(together[10:]) == 12 * 30


def test_weighted_plans_come_from_seed_and_epoch_alone(tmp_path: Path) -> None:
    pairs = weighted(tmp_path, (300, 1), (80, 2.5), (100, 0.3))
    plan = BatchPlan(pairs, 200, seed=4)
    fifth = as_lists(plan, 5)
    assert as_lists(BatchPlan(Pairs(tmp_path), 200, seed=4), 5) == fifth
    assert as_lists(plan, 6) != fifth != as_lists(BatchPlan(pairs, 200, seed=3), 5)
    assert all(len(batch) * width(some(480), batch) <= 200 for batch in fifth)


def test_corpora_are_mixed_and_not_seen_one_after_the_other(tmp_path: Path) -> None:
    """Of every tenth of the epoch, the second corpus has about its share."""
    flat = list(chain(*as_lists(BatchPlan(weighted(tmp_path, (2000, 1), (500, 2)), 200, window=5))))
    tenths = [flat[start : start + 300] for start in range(0, 3000, 300)]
    shares = [sum(index >= 2000 for index in tenth) / 300 for tenth in tenths]
    assert all(0.2 < share < 0.47 for share in shares)


def test_weights_of_one_give_the_plan_of_a_single_corpus(tmp_path: Path) -> None:
    """Which is the one that runs begun with earlier versions go on with: numpy's own permutation."""
    several = weighted(tmp_path / "several", (100, 1), (200, 1.0), (50, 1))
    single = pairs_of(tmp_path / "single", some(350))
    for epoch in (0, 3):
        plan = as_lists(BatchPlan(several, 200, seed=2), epoch)
        assert plan == as_lists(BatchPlan(single, 200, seed=2), epoch)
    order = BatchPlan(single, 200, seed=2)._order(np.random.default_rng((2, 3)))
    assert order.tolist() == np.random.default_rng((2, 3)).permutation(350).tolist()


def test_what_is_measured_on_comes_once_whatever_its_weight(tmp_path: Path) -> None:
    pairs = weighted(tmp_path, (30, 1), (30, 3), (30, 0.1))
    assert sorted(chain(*as_lists(BatchPlan(pairs, 200, shuffle=False)))) == list(range(90))


def test_a_plan_takes_four_bytes_a_pair(tmp_path: Path) -> None:
    """A million pairs of one id each, written at once; the files themselves are mapped, not read."""
    count = 1_000_000
    tmp_path.joinpath("pairs.json").write_text(
        json.dumps({"pairs": count, "tokens": {"source": count, "target": count}, "spans": [[0, count, 1.0]]})
    )
    for side in ("source", "target"):
        np.full(count, 4, dtype="<u4").tofile(tmp_path / f"{side}.ids")
        np.arange(1, count + 1, dtype="<u8").tofile(tmp_path / f"{side}.ends")
    plan = BatchPlan(Pairs(tmp_path), max_tokens=64, window=10)
    next(plan.epoch(0))  # whatever numpy loads the first time
    tracemalloc.start()
    try:
        next(plan.epoch(0))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert 4 * count <= peak < 5 * count


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
