"""Equation 3 at the points worked out by hand."""

from __future__ import annotations

import pytest

from transduce.errors import ConfigError
from transduce.training.schedule import cooled, cosine, inverse_sqrt, noam


@pytest.mark.parametrize(
    ("step", "d_model", "rate"),
    [(1, 512, 1.7469e-7), (4000, 512, 6.9877e-4), (100_000, 512, 1.3975e-4), (4000, 1024, 4.9411e-4)],
)
def test_noam_gives_the_papers_rates(step: int, d_model: int, rate: float) -> None:
    assert noam(step, d_model=d_model, warmup=4000) == pytest.approx(rate, rel=5e-5)


def test_noam_rises_linearly_then_falls_with_the_inverse_root() -> None:
    rates = [noam(step, d_model=512, warmup=100) for step in range(1, 1001)]
    assert max(rates) == rates[99]
    assert rates[49] == pytest.approx(rates[99] / 2)
    assert rates[399] == pytest.approx(rates[99] / 2)


@pytest.mark.parametrize("arguments", [(0, 512, 4000), (1, 0, 4000), (1, 512, 0)])
def test_noam_is_defined_from_step_1(arguments: tuple[int, int, int]) -> None:
    with pytest.raises(ConfigError, match=r"undefined.*first update is step 1"):
        noam(*arguments)


def test_inverse_sqrt_is_noam_with_its_own_peak() -> None:
    peak = noam(100, d_model=64, warmup=100)
    for step in (1, 50, 100, 101, 5000):
        assert inverse_sqrt(step, peak, warmup=100) == pytest.approx(noam(step, d_model=64, warmup=100))


def test_cosine_rises_to_its_peak_and_falls_to_its_floor() -> None:
    rates = [cosine(step, peak=1.0, warmup=10, total=110, floor=0.1) for step in range(1, 200)]
    assert rates[4] == pytest.approx(0.5)
    assert max(rates) == rates[9] == 1.0
    assert rates[59] == pytest.approx(0.55)
    assert rates[109] == rates[-1] == pytest.approx(0.1)


def test_a_cooldown_falls_to_zero_over_its_share_of_the_budget() -> None:
    assert [cooled(spent, 0.2) for spent in (0.0, 0.5, 0.8, 0.9, 1.0, 1.1)] == pytest.approx([1, 1, 1, 0.5, 0, 0])
    assert cooled(0.99, 0.0) == 1
