"""The loop by itself, on a task small enough to know all about: it resumes bit for bit, and says what it does."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from transduce.errors import ModelError
from transduce.model.dropout import Dropout
from transduce.training.checkpoint import CheckpointStore
from transduce.training.events import Cooling, Event, Finished, Resumed, Skipped, Stepped, Validated
from transduce.training.loop import Trainer
from transduce.training.loss import LossSum
from transduce.training.recipe import Budget, TrainingRecipe
from transduce.training.task import Validation


class Regression:
    """Fits y = Wx with dropout on x; 7 batches an epoch."""

    def __init__(self, poison: int | None = None) -> None:
        torch.manual_seed(4)
        self.module = nn.Sequential(Dropout(0.3), nn.Linear(6, 3))
        self.truth = torch.randn(3, 6)
        self.poison = poison
        """The batch whose loss is not a number."""
        self.used: list[tuple[int, int]] = []

    def batches(self, epoch: int, start: int) -> Iterator[tuple[int, int]]:
        yield from ((epoch, number) for number in range(start, 7))

    def loss(self, batch: tuple[int, int], r_drop: float = 0.0) -> LossSum:
        self.used.append(batch)
        generator = torch.Generator().manual_seed(1000 * batch[0] + batch[1])
        count = 5 + batch[1]
        x = torch.randn(count, 6, generator=generator)
        loss = (self.module(x) - x @ self.truth.T).pow(2).sum()
        if batch == (0, self.poison):
            loss = loss * float("nan")
        return LossSum(loss, loss.detach(), count)

    def size(self, batch: tuple[int, int]) -> int:
        return 1

    def split(self, batch: tuple[int, int], parts: int) -> list[tuple[int, int]]:
        return [batch]

    def rate(self, step: int) -> float:
        return 0.01

    def validate(self) -> Validation:
        error = (self.module[1].weight - self.truth).pow(2).sum().item()  # type: ignore[union-attr]
        return Validation({"error": error}, -error, [])


Make = Callable[..., Trainer[tuple[int, int]]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(
        name: str, task: Regression | None = None, steps: int | None = 40, stop_at: int | None = None, **settings: Any
    ) -> Trainer[tuple[int, int]]:
        recipe = TrainingRecipe(validate_every=10, checkpoint_every=4, average_decay=0.9, **settings)
        budget = Budget(steps=steps, epochs=None if steps else 3)
        events: list[Event] = []
        trainer = Trainer(
            task or Regression(), recipe, budget, tmp_path / name, events.append,
            should_stop=lambda: stop_at is not None and trainer.progress.step >= stop_at,
        )  # fmt: skip
        trainer.events = events  # type: ignore[attr-defined]
        return trainer

    return make


def weights(trainer: Trainer[Any]) -> dict[str, torch.Tensor]:
    return {name: value.detach().clone() for name, value in trainer.task.module.named_parameters()}


def events(trainer: Trainer[Any], kind: type) -> list[Any]:
    return [event for event in trainer.events if isinstance(event, kind)]  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"accumulate": 3},
        {"optimizer": "adamw", "weight_decay": 0.1, "clip": 0.5},
        {"optimizer": "muon", "cooldown": 0.5},
    ],
)
@pytest.mark.parametrize("stops", [[1], [4], [7, 8, 21], [10, 30, 39]])
def test_a_run_that_was_stopped_gives_the_same_weights_bit_for_bit(
    make: Make, stops: list[int], settings: dict[str, Any]
) -> None:
    whole = make("whole", **settings)
    assert whole.run().complete
    for stop in stops:
        assert not make("parts", stop_at=stop, **settings).run().complete
    parts = make("parts", **settings)
    assert parts.run().complete
    for name, value in weights(whole).items():
        assert torch.equal(value, weights(parts)[name])
        assert torch.equal(whole.average.values[name], parts.average.values[name])
    (ours, _), (theirs, _) = whole.best.load_newest(), parts.best.load_newest()
    assert ours is not None
    assert theirs is not None
    assert ours.step == theirs.step
    assert all(torch.equal(value, theirs.tensors[name]) for name, value in ours.tensors.items())


def test_a_run_that_was_killed_goes_on_from_its_last_checkpoint(make: Make) -> None:
    """As a kill does, this leaves in mid-step, without a word and without a checkpoint."""

    class Killed(BaseException):
        pass

    class Mortal(Regression):
        def loss(self, batch: tuple[int, int], r_drop: float = 0.0) -> LossSum:
            if len(self.used) == 22:
                raise Killed
            return super().loss(batch)

    with pytest.raises(Killed):
        make("run", task=Mortal()).run()
    survivor = make("run")
    survivor.run()
    assert [event.step for event in events(survivor, Resumed)] == [20]
    whole = make("whole")
    whole.run()
    assert all(torch.equal(value, weights(survivor)[name]) for name, value in weights(whole).items())


def test_a_damaged_checkpoint_is_passed_over_and_named(make: Make, tmp_path: Path) -> None:
    make("run", stop_at=9).run()
    newest = tmp_path / "run" / "checkpoints" / "step-9" / "tensors.safetensors"
    content = bytearray(newest.read_bytes())
    content[-3] ^= 1
    newest.write_bytes(content)
    again = make("run")
    again.run()
    (resumed,) = events(again, Resumed)
    assert resumed.step == 8
    assert resumed.damaged == [str(newest.parent)]
    whole = make("whole")
    whole.run()
    assert all(torch.equal(value, weights(again)[name]) for name, value in weights(whole).items())


@pytest.mark.parametrize("leftover", [".writing-step-8", "step-9"])
def test_what_a_kill_during_a_save_leaves_behind_is_not_taken_for_a_checkpoint(
    make: Make, tmp_path: Path, leftover: str
) -> None:
    make("run", stop_at=4).run()
    half = tmp_path / "run" / "checkpoints" / leftover
    half.mkdir()
    (half / "state.json").write_text(json.dumps({"step": 9}))
    again = make("run")
    again.run()
    assert events(again, Resumed)[0].step == 4


def test_every_batch_of_an_epoch_is_used_once_whatever_the_stops(make: Make) -> None:
    used = []
    for stop in (3, 5, 11, None):
        task = Regression()
        make("run", task=task, steps=None, stop_at=stop).run()
        used += task.used
    assert used == [(epoch, number) for epoch in range(3) for number in range(7)]


def test_accumulated_batches_give_the_step_of_one_large_batch(make: Make) -> None:
    """Gradients are summed and divided by all tokens, so unequal batches weigh by their tokens."""

    class Joined(Regression):
        def batches(self, epoch: int, start: int) -> Iterator[Any]:
            yield [(epoch, number) for number in range(7)]

        def loss(self, batch: Any, r_drop: float = 0.0) -> LossSum:
            parts = [super(Joined, self).loss(each) for each in batch]
            return LossSum(sum(part.loss for part in parts), parts[0].nll, sum(part.tokens for part in parts))  # type: ignore[arg-type]

    apart, joined = Regression(), Joined()
    for task in (apart, joined):
        task.module[0].probability = 0.0  # type: ignore[union-attr]
    first = make("apart", task=apart, steps=1, accumulate=7)
    second = make("joined", task=joined, steps=1)
    first.run()
    second.run()
    for name, value in weights(first).items():
        torch.testing.assert_close(value, weights(second)[name], rtol=0, atol=1e-6)


def test_a_gradient_that_is_not_a_number_is_skipped_and_reported(make: Make) -> None:
    trainer = make("run", task=Regression(poison=2), steps=5)
    trainer.run()
    assert [(event.step, event.reason) for event in events(trainer, Skipped)] == [
        (3, "its gradient is not a finite number")
    ]
    assert all(value.isfinite().all() for value in weights(trainer).values())


def test_training_that_diverges_for_good_ends_with_advice(make: Make) -> None:
    class Diverged(Regression):
        def loss(self, batch: tuple[int, int], r_drop: float = 0.0) -> LossSum:
            loss = self.module(torch.ones(1, 6)).sum() * float("inf")
            return LossSum(loss, loss.detach(), 1)

    with pytest.raises(
        ModelError, match=r"step 20: 20 steps in a row were skipped, .*not a finite.*Lower training\.rate"
    ):
        make("run", task=Diverged()).run()


def test_the_average_is_validated_and_the_best_is_kept(make: Make) -> None:
    trainer = make("run")
    trainer.run()
    validations = events(trainer, Validated)
    assert [event.step for event in validations] == [10, 20, 30, 40]
    best = max(validations, key=lambda event: -event.scores["error"])
    kept, _ = trainer.best.load_newest()
    assert kept is not None
    assert (kept.step, kept.values["scores"]) == (best.step, best.scores)
    assert best.better


class Stuck(Regression):
    """Never gets better."""

    def validate(self) -> Validation:
        return Validation({}, 1.0, [])


def test_training_ends_when_nothing_improves(make: Make) -> None:
    finished = make("run", task=Stuck(), steps=1000, patience=2).run()
    assert finished == Finished(30, "no better score in 2 validations", complete=True)


def test_with_a_cooldown_patience_begins_it_early_and_it_keeps_its_share(make: Make) -> None:
    """After 30 steps two validations in a row were no better; these are to be three fifths of the run."""
    settings: dict[str, Any] = {"steps": 1000, "patience": 2, "cooldown": 0.4}
    whole = make("whole", task=Stuck(), **settings)
    assert whole.run() == Finished(50, "nothing got better, and the rate has fallen to zero", complete=True)
    assert events(whole, Cooling) == [Cooling(30, until=50)]
    rates = [event.rate for event in events(whole, Stepped)]
    assert rates[:31] == pytest.approx([0.01] * 31)
    assert rates[31:] == pytest.approx([0.01 * left / 20 for left in range(19, 0, -1)])

    make("cut", task=Stuck(), stop_at=37, **settings).run()
    again = make("cut", task=Stuck(), **settings)
    assert again.run().step == 50
    assert events(again, Cooling) == [Cooling(37, until=50)]
    assert [event.rate for event in events(again, Stepped)] == rates[37:]


def test_patience_ends_a_run_that_is_cooling_down_already(make: Make) -> None:
    trainer = make("run", task=Stuck(), steps=50, patience=2, cooldown=0.5)
    assert trainer.run() == Finished(30, "no better score in 2 validations", complete=True)
    assert events(trainer, Cooling) == []


@pytest.mark.parametrize("steps", [3, 17])
def test_the_weights_at_the_end_are_scored_too(make: Make, tmp_path: Path, steps: int) -> None:
    trainer = make("run", steps=steps)
    trainer.run()
    last = events(trainer, Validated)[-1]
    assert (last.step, last.better) == (steps, True)  # the regression is still improving
    kept = Trainer.best_weights(tmp_path / "run")
    assert (kept.step, kept.values["scores"]) == (steps, last.scores)
    again = make("run", steps=steps)
    again.run()
    assert events(again, Validated) == []


def test_a_run_with_a_larger_budget_goes_on_as_if_it_had_had_it(make: Make, tmp_path: Path) -> None:
    class Worsening(Regression):
        """What is validated first is best."""

        def validate(self) -> Validation:
            step = len(self.used)
            return Validation({"step": step}, -step, [])

    for task in (Regression, Worsening):
        long, extended = f"long {task.__name__}", f"extended {task.__name__}"
        make(long, task=task(), steps=40).run()
        make(extended, task=task(), steps=7).run()
        make(extended, task=task(), steps=40).run()
        one, other = (Trainer.best_weights(tmp_path / name) for name in (long, extended))
        assert one.step == other.step
        for name, value in one.tensors.items():
            assert torch.equal(value, other.tensors[name])


def test_steps_report_loss_per_token_and_rate(make: Make) -> None:
    trainer = make("run", steps=20)
    trainer.run()
    steps = events(trainer, Stepped)
    assert [event.step for event in steps] == list(range(1, 21))
    assert steps[-1].loss < steps[0].loss
    assert {event.rate for event in steps} == {0.01}
    assert steps[0].tokens == 5


def test_a_cooldown_ends_with_the_budget(make: Make) -> None:
    trainer = make("run", steps=20, cooldown=0.5)
    trainer.run()
    rates = [event.rate for event in events(trainer, Stepped)]
    assert rates == pytest.approx([0.01] * 10 + [0.01 * (1 - done / 10) for done in range(10)])


@pytest.mark.parametrize(("share", "without"), [(1.0, 0), (0.25, 15), (0.5, 10)])
def test_r_drop_is_at_work_in_the_last_part_of_the_budget(make: Make, share: float, without: int) -> None:
    class Asked(Regression):
        def __init__(self) -> None:
            super().__init__()
            self.asked: list[float] = []

        def loss(self, batch: tuple[int, int], r_drop: float = 0.0) -> LossSum:
            self.asked.append(r_drop)
            return super().loss(batch, r_drop)

    task = Asked()
    make("run", task, steps=20, r_drop=0.7, r_drop_share=share).run()
    assert task.asked == [0.0] * without + [0.7] * (20 - without)


def test_only_the_newest_checkpoints_are_kept(make: Make, tmp_path: Path) -> None:
    make("run").run()
    assert sorted(path.name for path in (tmp_path / "run" / "checkpoints").iterdir()) == ["step-36", "step-40"]
    assert CheckpointStore(tmp_path / "nowhere").load_newest() == (None, [])
