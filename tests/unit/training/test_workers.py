"""Several workers give what one gives, and the same bits each time."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest
import torch
from torch import Tensor

from transduce.model import Transformer, TransformerConfig
from transduce.model.workers import Workers
from transduce.training.accumulate import Accumulator
from transduce.training.loss import LossSum, smoothed_cross_entropy
from transduce.training.task import Validation

PAD = 0


class Copying:
    """A small Transformer that learns to copy; a batch is a tensor of ids."""

    def __init__(self, dropout: float) -> None:
        torch.manual_seed(3)
        self.module = Transformer(TransformerConfig.tiny(40, dropout=dropout))

    def batches(self, epoch: int, start: int) -> Iterator[Tensor]:
        raise NotImplementedError

    def loss(self, batch: Tensor, r_drop: float = 0.0) -> LossSum:
        hidden = self.module.hidden(batch, batch)
        return smoothed_cross_entropy(hidden, self.module.projection.weight, batch, PAD)

    def size(self, batch: Tensor) -> int:
        return batch.numel()

    def split(self, batch: Tensor, parts: int) -> list[Tensor]:
        return [part for part in batch.tensor_split(parts) if len(part)]

    def rate(self, step: int) -> float:
        raise NotImplementedError

    def validate(self) -> Validation:
        raise NotImplementedError


def gradient(count: int, dropout: float, rows: int = 7) -> tuple[list[Tensor], float, int]:
    task = Copying(dropout)
    batch = torch.randint(3, 40, (rows, 9), generator=torch.Generator().manual_seed(5))
    batch[2, 4:] = PAD
    torch.manual_seed(8)
    with Workers(count) as workers:
        added = Accumulator(task, workers).add(batch)
    return [value.grad for value in task.module.parameters() if value.grad is not None], added.loss, added.tokens


@pytest.mark.parametrize("count", [2, 3, 9])
def test_workers_together_give_the_gradient_of_one(count: int) -> None:
    (ours, our_loss, our_tokens), (theirs, loss, tokens) = gradient(count, 0.0), gradient(1, 0.0)
    assert our_tokens == tokens == 6 * 9 + 4
    assert our_loss == pytest.approx(loss, rel=1e-5)
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)


def test_dropout_is_the_same_each_time_whoever_is_done_first() -> None:
    first = gradient(3, 0.4)
    for _ in range(4):
        again = gradient(3, 0.4)
        assert all(torch.equal(one, other) for one, other in zip(first[0], again[0], strict=True))
        assert again[1] == first[1]


def test_each_worker_drops_something_else() -> None:
    """Rows that are the same give gradients that are not, if each worker has a mask of its own."""
    task = Copying(0.4)
    batch = torch.full((2, 5), 7)
    with Workers(2) as workers:
        accumulator = Accumulator(task, workers)
        seen = list(workers.map(lambda seed: accumulator._gradient(0.0, batch[:1], seed)[1].loss, [1, 2]))
    assert seen[0] != seen[1]


def test_results_come_in_order_and_from_other_threads() -> None:
    together = threading.Barrier(3, timeout=30)

    def work(item: int) -> tuple[int, int]:
        together.wait()  # which only ends when all three are at work
        return item * item, threading.get_ident()

    with Workers(3) as workers:
        results = list(workers.map(work, [3, 1, 2]))
    assert [square for square, _ in results] == [9, 1, 4]
    assert len({thread for _, thread in results}) == 3


def test_threads_of_pytorch_are_given_back() -> None:
    before = torch.get_num_threads()
    torch.set_num_threads(4)
    try:
        with Workers(2) as workers:
            assert list(workers.map(lambda _: torch.get_num_threads(), [0, 1])) == [2, 2]
        assert torch.get_num_threads() == 4
        assert Workers.suited_to(torch.device("cpu"), batch_tokens=2048).count == 4
        assert Workers.suited_to(torch.device("cpu"), batch_tokens=1100).count == 2
        assert Workers.suited_to(torch.device("cpu"), batch_tokens=100).count == 1
        assert Workers.suited_to(torch.device("cuda"), batch_tokens=2048).count == 1
    finally:
        torch.set_num_threads(before)


def test_an_error_in_a_worker_is_raised() -> None:
    def fail(item: int) -> int:
        raise ValueError(f"item {item}")

    with Workers(2) as workers, pytest.raises(ValueError, match="item 1"):
        list(workers.map(fail, [1, 2]))


@pytest.mark.parametrize(("at_once", "expected"), [(15, 3), (34, 2), (35, 1)])
def test_parts_of_bounded_size_give_the_same_gradient(at_once: int, expected: int) -> None:
    batch = torch.arange(7 * 5).view(7, 5) % 11 + 3

    def found(workers: Workers) -> tuple[list[torch.Tensor], int]:
        torch.manual_seed(1)
        accumulator = Accumulator(task := Copying(0.0), workers)
        parts = accumulator.add(batch).parts
        return [p.grad for p in task.module.parameters() if p.grad is not None], parts

    whole, one = found(Workers())
    pieces, several = found(Workers(at_once=at_once))
    assert (one, several) == (1, expected)
    for mine, other in zip(pieces, whole, strict=True):
        torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-4)
