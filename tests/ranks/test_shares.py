"""Every pair is learned from once an epoch, by one rank, and ranks have about the same to do."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.data.batches import BatchPlan
from transduce.data.shards import Pairs, PairWriter
from transduce.errors import ConfigError
from transduce.model.workers import Workers
from transduce.training.ranks import Ranks, joined_ranks


@given(
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=20),
    count=st.integers(1, 7),
    start=st.integers(0, 20),
)
def test_ranks_divide_each_batch_among_them(sizes: list[int], count: int, start: int) -> None:
    ends = np.cumsum(sizes)
    plan = [np.arange(end - size, end) for size, end in zip(sizes, ends, strict=True)]
    shares = [list(Ranks(rank, count).shares(iter(plan), 3, start)) for rank in range(count)]
    for number, batch in enumerate(plan[start:]):
        rows = [share[number][0] for share in shares]
        assert sorted(np.concatenate(rows).tolist()) == batch.tolist()
        assert max(map(len, rows)) - min(map(len, rows)) <= 1
        assert len({share[number][1] for share in shares}) == count  # each has chances of its own
    assert all(len(share) == max(0, len(plan) - start) for share in shares)


def test_no_rank_has_less_to_do_than_the_others(tmp_path: Path) -> None:
    """Sentences of very different lengths, in an order that a cut in halves would make the worst of."""
    generator = np.random.default_rng(0)
    with PairWriter(tmp_path / "pairs") as writer:
        for length in sorted(generator.integers(1, 60, 3000).tolist()):
            writer.write(list(range(4, 4 + length)), list(range(4, 4 + length)))
    pairs = Pairs(tmp_path / "pairs")
    for count in (2, 3, 4):
        tokens = []
        for rank in range(count):
            shares = Ranks(rank, count).shares(BatchPlan(pairs, 2048).epoch(0), 0, 0)
            tokens.append(sum(int(pairs.lengths("target", rows).sum()) for rows, _ in shares))
        assert sum(tokens) == pairs.tokens["target"]
        assert max(tokens) / min(tokens) < 1.06


def test_a_single_rank_tells_nobody_anything() -> None:
    with joined_ranks() as ranks:
        assert ranks.count == 1
        assert ranks.leads
        assert ranks.total(1.5, 2) == [1.5, 2]
        assert ranks.of_leader("this") == "this"
        assert list(ranks.map(Workers(), lambda number: number + 1, [1, 2, 3])) == [2, 3, 4]


@pytest.mark.parametrize(
    ("variables", "message"),
    [
        ({"WORLD_SIZE": "two"}, "WORLD_SIZE is 'two', which is no number"),
        ({"WORLD_SIZE": "2"}, "RANK is '', which is no number"),
        ({"WORLD_SIZE": "2", "RANK": "0"}, "MASTER_ADDR is not set. Start it with torchrun"),
    ],
)
def test_half_an_environment_is_said(variables: dict[str, str], message: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("WORLD_SIZE", "RANK", "LOCAL_RANK", "MASTER_ADDR", "MASTER_PORT"):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with pytest.raises(ConfigError, match=message), joined_ranks():
        pass
