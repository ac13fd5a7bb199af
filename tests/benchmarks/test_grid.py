"""Grid files: those that come with it, what a product means, and which pairs are drawn."""

from __future__ import annotations

from pathlib import Path

import pytest

from experiment.grid import load_grid
from experiment.texts import subset
from results.scores import Scores, standard_error
from transduce.data.corpus import Pair

GRIDS = sorted((Path(__file__).parents[2] / "benchmarks" / "grids").glob("*.yaml"))


@pytest.mark.parametrize("path", GRIDS, ids=lambda path: path.stem)
def test_grids_that_come_with_it_can_be_run(path: Path) -> None:
    grid = load_grid(path)
    assert 2 <= len(grid.all_variants()) <= 16
    first = dict(grid.all_variants())
    assert next(iter(first.values())) == (), "the first variant is what the others are compared with"
    recipes = [run.recipe for run in grid.runs() if run.seed == grid.seeds[0]]
    assert len({recipe.dump() for recipe in recipes}) == len(recipes), "every variant differs from every other"


def test_there_are_grids() -> None:
    assert len(GRIDS) >= 3


def test_a_product_is_every_combination_with_that_of_the_first_values_first(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text(
        "corpus: tatoeba-en-de\nrecipe: small-corpus\nbudget: {steps: 10}\nseeds: [3, 5]\n"
        "product: {model.dropout: [0.1, 0.3], tokenizer.vocab_size: [2000, 4000]}\n"
    )
    runs = load_grid(path).runs()
    assert [run.name for run in runs[:4]] == [
        "dropout-0.1-vocab-size-2000-3",
        "dropout-0.1-vocab-size-4000-3",
        "dropout-0.3-vocab-size-2000-3",
        "dropout-0.3-vocab-size-4000-3",
    ]
    assert [run.seed for run in runs] == [3] * 4 + [5] * 4
    last = runs[-1].recipe
    assert (last.model["dropout"], last.tokenizer.vocab_size, last.training.seed) == (0.3, 4000, 5)
    assert last.budget.steps == 10
    assert last.budget.minutes is None


def test_another_budget_is_another_result(tmp_path: Path) -> None:
    path = tmp_path / "grid.yaml"
    path.write_text("corpus: tatoeba-en-de\nrecipe: small-corpus\nbudget: {steps: 10}\nvariants: {base: []}\n")
    one, other = load_grid(path), load_grid(path, minutes=3)
    assert one.runs()[0].fingerprint == load_grid(path).runs()[0].fingerprint
    assert one.runs()[0].fingerprint != other.runs()[0].fingerprint
    assert other.runs()[0].recipe.budget.steps is None


def test_fewer_pairs_are_the_first_of_more_and_no_run_of_the_file() -> None:
    pairs = [Pair(f"a {number}", f"b {number}") for number in range(1000)]
    few, many = subset(pairs, 50), subset(pairs, 400)
    assert many[:50] == few
    assert len(set(many)) == 400
    places = [pairs.index(pair) for pair in many]
    assert 400 < sum(places) / len(places) < 600  # from everywhere


def test_the_error_of_a_difference_is_that_of_two_means() -> None:
    one, other = Scores([1.0, 3.0]), Scores([10.0, 10.0, 13.0])
    assert (one.mean, other.mean) == (2.0, 11.0)
    assert standard_error(one, other) == pytest.approx((2 / 2 + 3 / 3) ** 0.5)
