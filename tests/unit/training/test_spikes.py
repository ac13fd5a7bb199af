"""A loss spike is skipped; falling norms, hard batches and a new normal are not."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from transduce.model.dropout import Dropout
from transduce.training.events import Event, Skipped
from transduce.training.loop import Trainer
from transduce.training.loss import LossSum
from transduce.training.recipe import Budget, TrainingRecipe
from transduce.training.spikes import SpikeGuard
from transduce.training.task import Validation


def usual(guard: SpikeGuard, steps: int, seed: int = 1) -> None:
    generator = random.Random(seed)
    for _ in range(steps):
        assert not guard.is_spike(1 + generator.random(), 2 + generator.random())


def test_a_far_larger_gradient_with_a_far_larger_loss_is_a_spike() -> None:
    guard = SpikeGuard()
    usual(guard, 60)
    assert guard.is_spike(norm=30.0, loss=4.0)
    usual(guard, 60)


@pytest.mark.parametrize(
    ("norm", "loss"), [(9.0, 9.0), (30.0, 2.5), (30.0, 3.5)], ids=["norm", "usual loss", "hard batch"]
)
def test_one_sign_alone_is_not_enough(norm: float, loss: float) -> None:
    guard = SpikeGuard()
    usual(guard, 60)
    assert not guard.is_spike(norm, loss)


def test_nothing_is_judged_before_there_is_enough_to_judge_by() -> None:
    for steps in (0, 1, 49):
        guard = SpikeGuard()
        usual(guard, steps)
        assert not guard.is_spike(norm=1e9, loss=1e9)


def test_norms_and_losses_that_fall_from_great_heights_are_no_spikes() -> None:
    guard = SpikeGuard()
    assert not any(guard.is_spike(1000 / step, 3 + 100 / step) for step in range(1, 500))


def test_after_three_in_a_row_a_step_is_taken_and_then_it_is_the_new_normal() -> None:
    guard = SpikeGuard()
    usual(guard, 100)
    judged = [guard.is_spike(1000.0 + step, 50.0 + step) for step in range(200)]
    assert judged[:4] == [True, True, True, False]
    assert sum(judged) < 50  # each above all before it by more than twice the perplexity, which no training keeps up
    level = [guard.is_spike(5000.0, 300.0) for _ in range(200)]
    assert not any(level)


def test_a_step_that_comes_back_every_epoch_is_not_skipped_for_ever() -> None:
    guard = SpikeGuard()
    usual(guard, 60)
    skipped = []
    for epoch in range(20):
        usual(guard, 30, seed=epoch)
        skipped.append(guard.is_spike(norm=40.0, loss=6.0))
    assert skipped == [True] + [False] * 19


class Spiky:
    """Fits y = Wx; some batches have absurd targets."""

    def __init__(self, spikes: tuple[int, ...] = ()) -> None:
        torch.manual_seed(4)
        self.module = nn.Sequential(Dropout(0.2), nn.Linear(6, 3))
        self.spikes = spikes

    def batches(self, epoch: int, start: int) -> Iterator[int]:
        yield from range(start, 100)

    def loss(self, batch: int, r_drop: float = 0.0) -> LossSum:
        x = torch.randn(8, 6, generator=torch.Generator().manual_seed(batch))
        y = x[:, :3] * (1000 if batch in self.spikes else 1)
        loss = (self.module(x) - y).pow(2).sum()
        return LossSum(loss, loss.detach(), 8)

    def size(self, batch: int) -> int:
        return 8

    def split(self, batch: int, parts: int) -> list[int]:
        return [batch]

    def rate(self, step: int) -> float:
        return 0.01

    def validate(self) -> Validation:
        return Validation({}, 0.0, [])


Run = Callable[..., "tuple[list[torch.Tensor], list[Skipped]]"]


@pytest.fixture
def run(tmp_path: Path) -> Run:
    def run(name: str, *spikes: int, stop_at: int | None = None, **settings: Any) -> Any:
        events: list[Event] = []
        recipe = TrainingRecipe(checkpoint_every=1000, **settings)
        trainer = Trainer(
            Spiky(spikes), recipe, Budget(steps=80), tmp_path / name, events.append,
            should_stop=lambda: stop_at is not None and trainer.progress.step >= stop_at,
        )  # fmt: skip
        trainer.run()
        weights = [parameter.detach() for parameter in trainer.task.module.parameters()]
        return weights, [event for event in events if isinstance(event, Skipped)]

    return run


def distance(one: list[torch.Tensor], other: list[torch.Tensor]) -> float:
    return max(float((a - b).abs().max()) for a, b in zip(one, other, strict=True))


def test_a_spike_in_a_run_is_skipped_and_leaves_the_weights_where_they_were(run: Run) -> None:
    calm, none = run("calm")
    guarded, skipped = run("guarded", 60)
    hurt, ignored = run("hurt", 60, skip_spikes=False)
    assert none == ignored == []
    assert [event.step for event in skipped] == [61]
    assert "a loss spike: its gradient's norm is" in skipped[0].reason
    assert distance(guarded, calm) < 0.05 < distance(hurt, calm)


def test_several_spikes_in_a_row_do_not_stop_the_run(run: Run) -> None:
    _, skipped = run("run", *range(60, 80))
    assert 1 <= len(skipped) <= 5


@pytest.mark.parametrize("stop", [30, 59, 60, 61, 62])
def test_a_run_that_was_stopped_near_a_spike_gives_the_same_bits(run: Run, stop: int) -> None:
    whole, skipped = run("whole", 60, 61, 70)
    _, before = run("parts", 60, 61, 70, stop_at=stop)
    parts, after = run("parts", 60, 61, 70)
    assert before + after == skipped
    assert distance(whole, parts) == 0.0
