"""The mean of the last or best weights: rightly computed, kept only if better, and the same after any interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from safetensors.numpy import load_file
from torch import nn

from transduce.errors import StorageError
from transduce.model.dropout import Dropout
from transduce.training.average import Snapshots, mean_weights
from transduce.training.events import Averaged, Event, Stepped, Validated
from transduce.training.loop import Trainer
from transduce.training.loss import LossSum
from transduce.training.recipe import Budget, TrainingRecipe
from transduce.training.task import Validation


class Noisy:
    """Fits y = Wx from noisy pairs: the weights wander about the best ones, and their mean is closer to them."""

    def __init__(self, rate: float = 0.1) -> None:
        torch.manual_seed(4)
        self.module = nn.Sequential(Dropout(0.1), nn.Linear(6, 3, bias=False))
        self.truth = torch.randn(3, 6)
        self.constant_rate = rate

    def batches(self, epoch: int, start: int) -> Iterator[int]:
        yield from range(100 * epoch + start, 100 * (epoch + 1))

    def loss(self, batch: int, r_drop: float = 0.0) -> LossSum:
        generator = torch.Generator().manual_seed(batch)
        x = torch.randn(8, 6, generator=generator)
        y = x @ self.truth.T + torch.randn(8, 3, generator=generator)
        loss = (self.module(x) - y).pow(2).sum()
        return LossSum(loss, loss.detach(), 8)

    def size(self, batch: int) -> int:
        return 8

    def split(self, batch: int, parts: int) -> list[int]:
        return [batch]

    def rate(self, step: int) -> float:
        return self.constant_rate

    def validate(self) -> Validation:
        error = (self.module[1].weight - self.truth).pow(2).sum().item()  # type: ignore[union-attr]
        return Validation({"error": error}, -error, [])


class Killed(BaseException):
    """Leaves as a kill does: nothing handles it."""


Make = Callable[..., "tuple[Trainer[int], list[Event]]"]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    def make(
        name: str, task: Noisy | None = None, steps: int = 50, kill_at: int | None = None, **settings: Any
    ) -> tuple[Trainer[int], list[Event]]:
        events: list[Event] = []

        def emit(event: Event) -> None:
            events.append(event)
            if len(events) == kill_at:
                raise Killed

        chosen = {"average": "last", "average_count": 3, "validate_every": 10, "checkpoint_every": 16} | settings
        recipe = TrainingRecipe.model_validate(chosen)
        return Trainer(task or Noisy(), recipe, Budget(steps=steps), tmp_path / name, emit), events

    return make


def on_disk(directory: Path) -> dict[int, dict[str, Any]]:
    """The snapshots by step, read without our code."""
    return {
        int(path.name.removeprefix("step-")): load_file(path / "tensors.safetensors")
        for path in sorted((directory / "snapshots").iterdir())
    }


def numpy_mean(snapshots: dict[int, dict[str, Any]]) -> Any:
    values = [each["1.weight"].astype(np.float64) for each in snapshots.values()]
    return np.mean(values, axis=0).astype(np.float32)


# The mean


@pytest.mark.parametrize("count", [1, 2, 5, 20])
def test_the_mean_is_that_of_numpy(count: int) -> None:
    generator = np.random.default_rng(count)
    scales = 10.0 ** generator.integers(-8, 8, (7, 11))  # single precision would lose the small ones
    values = (generator.standard_normal((count, 7, 11)) * scales).astype(np.float32)
    values[0] += 1e6
    given = [{"a": torch.from_numpy(each), "b": torch.from_numpy(each[:2])} for each in values]
    mean = mean_weights(given)
    expected = values.astype(np.float64).mean(axis=0).astype(np.float32)
    assert mean["a"].dtype == torch.float32
    np.testing.assert_array_equal(mean["a"].numpy(), expected)
    np.testing.assert_array_equal(mean["b"].numpy(), expected[:2])
    np.testing.assert_array_equal(given[0]["a"].numpy(), values[0])  # and what it is of stays as it is


# Which are kept


@pytest.mark.parametrize(
    ("choice", "scores", "kept"),
    [
        ("last", [5.0, 4.0, 3.0, 2.0, 1.0], [30, 40, 50]),
        ("best", [5.0, 4.0, 3.0, 2.0, 1.0], [10, 20, 30]),
        ("best", [-3.0, 7.0, -4.0, 9.0, 8.0], [20, 40, 50]),
        ("best", [1.0, 1.0, 1.0, 1.0, 1.0], [30, 40, 50]),  # of equals, those that have learned longer
        ("best", [2.0, 1.0], [10, 20]),
        ("best", [float("-inf"), 1.0, 2.0, 3.0], [20, 30, 40]),
    ],
)
def test_the_newest_or_the_best_are_kept(tmp_path: Path, choice: Any, scores: list[float], kept: list[int]) -> None:
    snapshots = Snapshots(tmp_path / "snapshots", choice, 3)
    for number, score in enumerate(scores, 1):
        snapshots.add(10 * number, score, {"1.weight": torch.full((2,), float(number))})
        snapshots.prune()
    assert sorted(on_disk(tmp_path)) == kept
    mean, steps, damaged = snapshots.mean()
    assert (steps, damaged) == (kept, [])
    assert mean["1.weight"].tolist() == pytest.approx([sum(kept) / len(kept) / 10] * 2)


# The end of a run


@pytest.mark.parametrize("choice", ["last", "best"])
def test_the_mean_becomes_the_model_if_it_is_better(make: Make, tmp_path: Path, choice: str) -> None:
    trainer, events = make("run", average=choice)
    trainer.run()
    (averaged,) = [event for event in events if isinstance(event, Averaged)]
    validations = [event for event in events if isinstance(event, Validated)]
    snapshots = on_disk(tmp_path / "run")
    assert averaged.steps == sorted(snapshots)
    if choice == "last":
        assert averaged.steps == [30, 40, 50]
    best = min(validations, key=lambda event: event.scores["error"])
    assert (averaged.best_step, averaged.best_scores) == (best.step, best.scores)
    assert averaged.better
    assert averaged.scores["error"] < best.scores["error"]
    kept = Trainer.best_weights(tmp_path / "run")
    np.testing.assert_array_equal(kept.tensors["1.weight"].numpy(), numpy_mean(snapshots))
    assert kept.values["scores"] == averaged.scores
    assert kept.values["mean_of"] == averaged.steps


def test_the_best_single_weights_stay_if_the_mean_is_worse(make: Make, tmp_path: Path) -> None:
    """With a low rate the weights get better at every step, so a mean looks back."""
    trainer, events = make("run", task=Noisy(rate=0.001))
    trainer.run()
    (averaged,) = [event for event in events if isinstance(event, Averaged)]
    assert not averaged.better
    assert averaged.scores["error"] > averaged.best_scores["error"]
    kept = Trainer.best_weights(tmp_path / "run")
    assert kept.step == averaged.best_step == 50
    assert "mean_of" not in kept.values
    assert torch.equal(kept.tensors["1.weight"], trainer.task.module[1].weight)  # type: ignore[index]


@pytest.mark.parametrize("choice", ["last", "best", "none"])
def test_the_weights_themselves_are_validated(make: Make, choice: str) -> None:
    trainer, events = make("run", steps=20, average=choice)
    trainer.run()
    last = [event for event in events if isinstance(event, Validated)][-1]
    assert last.scores == trainer.task.validate().scores


@pytest.mark.parametrize(("choice", "steps"), [("none", 50), ("moving", 50), ("last", 10), ("best", 3)])
def test_without_two_snapshots_there_is_no_mean(make: Make, tmp_path: Path, choice: str, steps: int) -> None:
    trainer, events = make("run", average=choice, steps=steps)
    trainer.run()
    assert not any(isinstance(event, Averaged) for event in events)
    assert "mean_of" not in Trainer.best_weights(tmp_path / "run").values
    assert not (tmp_path / "run" / "mean").exists()


def test_a_damaged_snapshot_is_left_out_and_named(make: Make, tmp_path: Path) -> None:
    make("run", steps=48)[0].run()
    rotten = tmp_path / "run" / "snapshots" / "step-30" / "tensors.safetensors"
    content = bytearray(rotten.read_bytes())
    content[-3] ^= 1
    rotten.write_bytes(content)
    trainer, events = make("run")
    trainer.run()
    (averaged,) = [event for event in events if isinstance(event, Averaged)]
    assert averaged.steps == [40, 50]
    assert averaged.damaged == [str(rotten.parent)]


def test_a_score_that_is_not_a_number_still_leaves_a_model(make: Make, tmp_path: Path) -> None:
    class Blind(Noisy):
        def validate(self) -> Validation:
            return Validation({"error": float("nan")}, float("nan"), [])

    make("run", task=Blind(), average="best")[0].run()
    assert Trainer.best_weights(tmp_path / "run").step == 10


def test_missing_weights_are_said_in_words(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"best: the weights that validated best are missing.*train again"):
        Trainer.best_weights(tmp_path)


# Interruptions


def outcome(directory: Path) -> tuple[Any, ...]:
    kept = Trainer.best_weights(directory)
    files = {name: each["1.weight"].tobytes() for name, each in on_disk(directory).items()}
    return kept.step, kept.values, kept.tensors["1.weight"].numpy().tobytes(), files


@pytest.mark.parametrize("choice", ["last", "best"])
def test_a_kill_at_any_report_changes_nothing(make: Make, tmp_path: Path, choice: str) -> None:
    settings = {"steps": 28, "average": choice, "average_count": 2, "validate_every": 6, "checkpoint_every": 8}
    trainer, events = make("whole", **settings)
    trainer.run()
    assert [type(event).__name__ for event in events[-3:]] == ["Averaged", "Saved", "Finished"]
    moments = [number for number, event in enumerate(events, 1) if not isinstance(event, Stepped)]
    for moment in moments:
        with pytest.raises(Killed):
            make(f"killed-{moment}", kill_at=moment, **settings)[0].run()
        make(f"killed-{moment}", **settings)[0].run()
        assert outcome(tmp_path / f"killed-{moment}") == outcome(tmp_path / "whole"), events[moment - 1]


def test_a_kill_while_the_mean_is_scored_changes_nothing(make: Make, tmp_path: Path) -> None:
    class Mortal(Noisy):
        validations = 0

        def validate(self) -> Validation:
            self.validations += 1
            if self.validations == 6:
                raise Killed
            return super().validate()

    make("whole")[0].run()
    with pytest.raises(Killed):
        make("killed", task=Mortal())[0].run()
    make("killed")[0].run()
    assert outcome(tmp_path / "killed") == outcome(tmp_path / "whole")


@pytest.mark.parametrize("settings", [{}, {"average": "best"}])
def test_a_longer_budget_gives_what_it_would_have_given_at_once(
    make: Make, tmp_path: Path, settings: dict[str, Any]
) -> None:
    make("once", steps=90, **settings)[0].run()
    for steps in (30, 30, 50, 90):
        make("longer", steps=steps, **settings)[0].run()
    assert outcome(tmp_path / "longer") == outcome(tmp_path / "once")


def test_a_complete_run_that_is_started_again_writes_nothing(make: Make, tmp_path: Path) -> None:
    make("run")[0].run()
    files = {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")}
    trainer, events = make("run")
    assert trainer.run().complete
    assert {path: path.stat().st_mtime_ns for path in (tmp_path / "run").rglob("*")} == files
    assert [type(event).__name__ for event in events] == ["Resumed", "Averaged", "Finished"]
