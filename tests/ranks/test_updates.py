"""However many ranks share a batch, the steps are those of one."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path

import pytest
from tests.ranks.conftest import Outcome, Train, checkpoint, events, farthest


@pytest.fixture(scope="module")
def alone(
    crew: Callable[[int, list[str]], Outcome],
    arguments: Callable[..., list[str]],
    tmp_path_factory: pytest.TempPathFactory,
) -> Path:
    output = tmp_path_factory.mktemp("alone") / "model"
    ((code, said),) = crew(1, arguments(output))
    assert code == 0, said
    return output


@pytest.mark.parametrize(
    ("count", "more"),
    [(2, []), (3, []), (4, []), (2, ["--shard"]), (3, ["--shard"])],
    ids=["two", "three", "four", "two with shares", "three with shares"],
)
def test_weights_after_twenty_steps_are_those_of_one(
    alone: Path, train: Train, tmp_path: Path, count: int, more: list[str]
) -> None:
    outcome = train(count, tmp_path / "model", *more)
    one, many = checkpoint(alone, 20), checkpoint(tmp_path / "model", 20)
    start = {name: value for name, value in checkpoint(alone, 10).items() if name in one}
    assert farthest(one, start) > 1e-2  # or it would show nothing
    assert farthest(one, many) < 1e-5
    assert farthest(one, many, "average.") < 1e-5
    for ours, theirs in zip(events(alone, "Stepped"), events(tmp_path / "model", "Stepped"), strict=True):
        assert ours["tokens"] == theirs["tokens"]
        assert math.isclose(ours["loss"], theirs["loss"], rel_tol=1e-5)
    for ours, theirs in zip(events(alone, "Validated"), events(tmp_path / "model", "Validated"), strict=True):
        assert ours["scores"] == pytest.approx(theirs["scores"], rel=1e-4)
        assert ours["samples"] == theirs["samples"]
    assert "Finished at step 20" in outcome[0][1]
    assert [said for _, said in outcome[1:]] == [""] * (count - 1)  # one speaks for all


def test_muon_and_accumulated_batches_are_shared_too(train: Train, tmp_path: Path) -> None:
    settings = ["training.optimizer=muon", "training.accumulate=2", "training.average=last"]
    settings += ["training.validate_every=5"]
    for count in (1, 2):
        train(count, tmp_path / str(count), *settings, steps=10)
    one, two = (checkpoint(tmp_path / str(count), 10) for count in (1, 2))
    assert farthest(one, two) < 1e-4  # its rounds of products enlarge what rounding leaves
    means = [events(tmp_path / str(count), "Averaged")[0] for count in (1, 2)]
    assert means[0]["steps"] == means[1]["steps"] == [5, 10]
    assert means[0]["scores"] == pytest.approx(means[1]["scores"], rel=1e-3)


def test_with_dropout_a_run_that_was_left_is_bit_for_bit_the_one_that_was_not(train: Train, tmp_path: Path) -> None:
    noise = ["model.dropout=0.2", "tokenizer.dropout=0.1", "training.r_drop=0.5"]
    train(2, tmp_path / "whole", *noise)
    train(2, tmp_path / "left", *noise, steps=10)
    train(2, tmp_path / "left", *noise, steps=20)
    whole, left = checkpoint(tmp_path / "whole", 20), checkpoint(tmp_path / "left", 20)
    assert all(whole[name].equal(left[name]) for name in whole)


@pytest.mark.parametrize("shares", [[], ["--shard"]], ids=["whole", "shares"])
def test_a_run_of_two_goes_on_with_one_and_with_three(
    alone: Path, train: Train, tmp_path: Path, shares: list[str]
) -> None:
    model = tmp_path / "model"
    train(2, model, *shares, steps=7)
    train(1, model, steps=13)
    train(3, model, *shares, steps=20)
    assert farthest(checkpoint(alone, 20), checkpoint(model, 20)) < 1e-5
    assert [event["step"] for event in events(model, "Resumed")] == [7, 13]
