"""A batch that memory has no room for gives the gradient that it would have given, in parts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.errors import ModelError
from transduce.model.dropout import Dropout
from transduce.training.accumulate import Accumulator, is_out_of_memory
from transduce.training.events import Event, Halved, Skipped, Stepped
from transduce.training.loop import Trainer
from transduce.training.loss import LossSum
from transduce.training.recipe import Budget, TrainingRecipe
from transduce.training.task import Validation


def take_all_memory() -> None:
    torch.empty(1 << 50)  # PyTorch's own error: no machine has it


def gpu_error() -> None:
    raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 20.00 GiB.")


def python_error() -> None:
    raise MemoryError


class FailsBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, fail: Callable[[], None]) -> Tensor:
        ctx.fail = fail
        return x.clone()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> Any:  # type: ignore[override]
        ctx.fail()
        return gradient, None


class Cramped:
    """Two layers with memory for a number of rows; a batch is a tensor of rows."""

    def __init__(self, room: int = 1000, where: str = "forward", fail: Callable[[], None] = take_all_memory) -> None:
        torch.manual_seed(4)
        self.module = nn.Sequential(nn.Linear(6, 5), Dropout(0.0), nn.Linear(5, 3))
        self.room, self.where, self.fail = room, where, fail
        self.tried: list[int] = []

    def batches(self, epoch: int, start: int) -> Iterator[Tensor]:
        yield from (rows(16, seed=100 * epoch + number) for number in range(start, 4))

    def loss(self, batch: Tensor, r_drop: float = 0.0) -> LossSum:
        self.tried.append(len(batch))
        first, dropout, second = self.module
        hidden = dropout(first(batch))
        if len(batch) > self.room:
            if self.where == "forward":
                self.fail()
            hidden = FailsBackward.apply(hidden, self.fail)  # the second layer has its gradient before this fails
        loss = second(hidden).pow(2).sum()
        return LossSum(loss, loss.detach(), len(batch))

    def size(self, batch: Tensor) -> int:
        return batch.numel()

    def split(self, batch: Tensor, parts: int) -> list[Tensor]:
        return [part for part in batch.tensor_split(parts) if len(part)]

    def rate(self, step: int) -> float:
        return 0.01

    def validate(self) -> Validation:
        return Validation({}, 0.0, [])


def rows(count: int, seed: int = 0) -> Tensor:
    return torch.randn(count, 6, generator=torch.Generator().manual_seed(seed))


def gradients(task: Cramped) -> list[Tensor]:
    return [parameter.grad.clone() for parameter in task.module.parameters() if parameter.grad is not None]


@pytest.mark.parametrize("fail", [take_all_memory, gpu_error, python_error])
@pytest.mark.parametrize("where", ["forward", "backward"])
@pytest.mark.parametrize("room", [1, 3, 8, 15])
def test_the_gradient_is_that_of_the_whole_batches(room: int, where: str, fail: Callable[[], None]) -> None:
    cramped, roomy = Cramped(room, where, fail), Cramped()
    for task in (cramped, roomy):
        accumulator = Accumulator(task)
        # The first fits and must still be there, once, when the second has failed.
        added = [accumulator.add(rows(1, seed=1)), accumulator.add(rows(16, seed=2)), accumulator.add(rows(5, seed=3))]
        assert sum(each.tokens for each in added) == 22
        assert not any(each.left_out for each in added)
    for ours, theirs in zip(gradients(cramped), gradients(roomy), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_loss_and_tokens_are_those_of_the_whole_batch() -> None:
    added = Accumulator(Cramped(room=4)).add(rows(16))
    whole = Accumulator(Cramped()).add(rows(16))
    assert (added.parts, added.failed, whole.parts, whole.failed) == (4, True, 1, False)
    assert added.tokens == whole.tokens == 16
    assert added.loss == pytest.approx(whole.loss, rel=1e-6)
    assert added.nll == pytest.approx(whole.nll, rel=1e-6)


def test_batches_as_large_are_halved_at_once_and_no_longer_reported() -> None:
    task = Cramped(room=4)
    accumulator = Accumulator(task)
    accumulator.add(rows(16))
    assert task.tried == [16, 8, 4, 4, 4, 4]
    task.tried.clear()
    assert accumulator.add(rows(16)).failed is False
    assert task.tried == [4, 4, 4, 4]
    task.tried.clear()
    assert accumulator.add(rows(7)).failed is True  # a size between those that are known
    assert task.tried == [7, 4, 3]


def test_failing_first_or_halving_at_once_gives_the_same_bits_with_dropout() -> None:
    """So that a run which is continued, and has to find out again, goes the same way."""
    found: list[list[Tensor]] = []
    for knows in (False, True):
        task = Cramped(room=4, where="backward")
        task.module[1].probability = 0.5  # type: ignore[union-attr]
        accumulator = Accumulator(task)
        if knows:
            accumulator.too_large = 5 * 6
        torch.manual_seed(9)
        accumulator.add(rows(16))
        found.append([*gradients(task), torch.rand(3)])
    assert all(torch.equal(one, other) for one, other in zip(*found, strict=True))


def test_a_row_that_does_not_fit_by_itself_is_left_out() -> None:
    class Wide(Cramped):
        def loss(self, batch: Tensor, r_drop: float = 0.0) -> LossSum:
            if (batch > 99).any():
                take_all_memory()
            return super().loss(batch)

    task, other = Wide(), Cramped()
    batch = rows(7)
    batch[3] = 100
    added = Accumulator(task).add(batch)
    assert (added.tokens, added.left_out) == (6, 1)
    Accumulator(other).add(torch.cat((batch[:3], batch[4:])))
    for ours, theirs in zip(gradients(task), gradients(other), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_other_errors_are_not_swallowed() -> None:
    def fail() -> None:
        raise RuntimeError("mat1 and mat2 shapes cannot be multiplied (2x3 and 4x5)")

    with pytest.raises(RuntimeError, match="cannot be multiplied"):
        Accumulator(Cramped(2, fail=fail)).add(rows(4))
    assert not is_out_of_memory(ValueError("out of memory"))


def trained(task: Cramped, directory: Path, **settings: Any) -> tuple[Trainer[Tensor], list[Event]]:
    events: list[Event] = []
    recipe = TrainingRecipe(accumulate=2, **settings)
    trainer = Trainer(task, recipe, Budget(steps=6), directory, events.append)
    trainer.run()
    return trainer, events


def test_a_run_goes_on_and_reports_it_once(tmp_path: Path) -> None:
    cramped, events = trained(Cramped(room=5, where="backward"), tmp_path / "cramped")
    roomy, others = trained(Cramped(), tmp_path / "roomy")
    assert [event for event in events if isinstance(event, Halved)] == [Halved(1, parts=4, left_out=0)]
    assert not any(isinstance(event, Halved) for event in others)
    for ours, theirs in zip(cramped.task.module.parameters(), roomy.task.module.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-5)
    ours, theirs = ([event for event in each if isinstance(event, Stepped)] for each in (events, others))
    assert [event.loss for event in ours] == pytest.approx([event.loss for event in theirs], rel=1e-4)


def test_a_step_of_which_nothing_fits_is_skipped(tmp_path: Path) -> None:
    class Full(Cramped):
        def loss(self, batch: Tensor, r_drop: float = 0.0) -> LossSum:
            if len(self.tried) >= 8:  # from the fifth step on
                take_all_memory()
            return super().loss(batch)

    trainer, events = trained(Full(), tmp_path)
    skipped = [event for event in events if isinstance(event, Skipped)]
    assert skipped == [Skipped(step, "none of its pairs fits into memory") for step in (5, 6)]
    assert [(event.step, event.left_out) for event in events if isinstance(event, Halved)] == [(5, 16)] * 2 + [
        (6, 16)
    ] * 2
    assert all(value.isfinite().all() for value in trainer.task.module.parameters())


def test_a_model_that_memory_has_no_room_for_is_said_in_words(tmp_path: Path) -> None:
    class Large(Cramped):
        def validate(self) -> Validation:
            take_all_memory()
            raise AssertionError

    with pytest.raises(ModelError, match=r"step 6: memory is too small for this model\. Close other programs"):
        trained(Large(), tmp_path)
