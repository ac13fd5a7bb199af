"""What the speed is measured on is like what is planned for."""

from __future__ import annotations

import statistics

import pytest

from transduce.model.family import make_network
from transduce.model.workers import Workers
from transduce.training.machines import DEVICES, Machine
from transduce.training.plan import Planner
from transduce.training.recipes import find_recipe
from transduce.training.speed import Speed, made_up_task

TINY = ["model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2"]


@pytest.mark.parametrize("name", ["small-corpus", "language-model", "masked-language-model", "classification",
                                  "tagging", "image-classification", "parsing"])  # fmt: skip
def test_made_up_batches_are_as_full_as_planned_ones(name: str) -> None:
    recipe = find_recipe(name).with_overrides([*TINY, "training.batch_tokens=512"])
    planner = Planner(recipe, Machine(DEVICES["cpu"]), (12.0, 15.0))
    model = make_network(recipe.family, vars(planner.config))
    task = made_up_task(recipe, planner.config, model, planner.lengths, Workers())
    batches = list(task.batches(0, 0))
    load = planner.load()
    asked = statistics.mean(int((batch.labels > (0 if hasattr(batch, "target") else -1)).sum()) for batch in batches)
    assert asked == pytest.approx(load.asked, rel=0.15)
    sizes = statistics.mean(task.size(batch) for batch in batches)
    assert sizes == pytest.approx(load.read_and_written * 16, rel=0.15)
    assert task.loss(batches[0]).loss.item() > 0


def test_an_update_takes_as_long_whatever_the_batch() -> None:
    speed = Speed("cpu", 2, steps=5, batch_tokens=100, tokens=100.0, seconds=3.0, update_seconds=1.0,
                  processor_seconds=4.5, threads=2)  # fmt: skip
    assert speed.seconds_for(100) == 3.0
    assert speed.seconds_for(1000) == 2.0 * 10 + 1.0
    assert speed.busy == 0.75
