"""A confidence learned from what is known gives it back, and errors are those that can be worked out by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from transduce.confidence import Confidence, Signs
from transduce.errors import InputError
from transduce.evaluation import calibration_of, cross_fitted, fit_confidence, sentence_chrf

TRUE = Confidence(
    base=0.05,
    token_probability=0.6,
    sentence_probability=0.2,
    length=0.03,
    odd_length=-0.1,
    usual_ratio=math.log(10 / 9),
    shortest=3,
    longest=30,
)


def drawn(texts: int, seed: int = 0, sentences: int = 1) -> list[list[Signs]]:
    """Texts of so many sentences, of all lengths and probabilities."""
    generator = np.random.default_rng(seed)

    def one() -> Signs:
        written = int(generator.integers(3, 31))
        read = max(1, round(written * 0.9 * math.exp(generator.normal(0, 0.2))))
        return Signs(written * math.log(generator.uniform(0.05, 1)), written, read)

    return [[one() for _ in range(sentences)] for _ in range(texts)]


def expected(signs: list[list[Signs]]) -> list[float]:
    """What such texts come to if TRUE is true."""
    found = [TRUE.of_text(mine) for mine in signs]
    return [each for each in found if each is not None]


def noisy(signs: list[list[Signs]], seed: int = 1) -> list[float]:
    """The same with chance: all or nothing with a probability of that, which is as much chance as there can be."""
    generator = np.random.default_rng(seed)
    return [float(generator.random() < each) for each in expected(signs)]


# The error


def test_a_confidence_that_is_right_has_no_error() -> None:
    shares = [place / 99 for place in range(100)]
    measured = calibration_of(shares, shares)
    assert measured is not None
    assert measured.error == pytest.approx(0)
    assert (measured.sentences, measured.confidence, measured.chrf) == (100, pytest.approx(0.5), pytest.approx(0.5))


@pytest.mark.parametrize("offset", [0.1, -0.07])
def test_one_that_is_off_by_as_much_everywhere_has_that_error(offset: float) -> None:
    shares = np.linspace(0.1, 0.9, 137)[np.random.default_rng(2).permutation(137)]
    measured = calibration_of(list(shares), list(shares + offset))
    assert measured is not None
    assert measured.error == pytest.approx(abs(offset))


def test_the_mean_for_everything_is_off_by_what_it_hides() -> None:
    """Scores 0 to 1 evenly, ½ for all: tenths of them have means 0.05, 0.15, …, 0.95."""
    scores = [(place + 0.5) / 1000 for place in range(1000)]
    measured = calibration_of([0.5] * 1000, scores)
    assert measured is not None
    assert measured.error == pytest.approx(0.25)


def test_too_high_here_does_not_make_up_for_too_low_there() -> None:
    measured = calibration_of([0.2] * 50 + [0.8] * 50, [0.3] * 50 + [0.7] * 50)
    assert measured is not None
    assert measured.error == pytest.approx(0.1)
    assert measured.confidence == pytest.approx(measured.chrf)


def test_texts_without_a_confidence_are_left_out() -> None:
    measured = calibration_of([None, 0.4, None], [0.9, 0.5, 0.9])
    assert measured is not None
    assert (measured.sentences, measured.error) == (1, pytest.approx(0.1))
    assert calibration_of([None, None], [0.9, 0.5]) is None


# Learning


@pytest.mark.parametrize("sentences", [1, 3])
def test_what_is_true_is_found(sentences: int) -> None:
    signs = drawn(2000, sentences=sentences)
    found = fit_confidence(signs, expected(signs))
    assert (found.shortest, found.longest) == (3, 30)
    others = drawn(200, seed=7, sentences=sentences)
    confidences = [found.of_text(mine) for mine in others]
    assert confidences == pytest.approx(expected(others), abs=0.01)


@pytest.mark.parametrize(("texts", "most"), [(50, 0.12), (200, 0.07), (2000, 0.03)])
def test_through_chance_it_comes_nearer_the_more_there_is(texts: int, most: float) -> None:
    signs = drawn(texts)
    found = fit_confidence(signs, noisy(signs))
    others = drawn(2000, seed=7)
    measured = calibration_of([found.of_text(mine) for mine in others], expected(others))
    assert measured is not None
    assert measured.error < most


def test_cross_fitting_tells_the_error_on_texts_that_were_not_learned_from() -> None:
    signs = drawn(1000)
    scores = noisy(signs)
    learned = fit_confidence(signs, scores)
    others = drawn(4000, seed=8)
    elsewhere = calibration_of([learned.of_text(mine) for mine in others], noisy(others, seed=9))
    crossed = cross_fitted(signs, scores)
    assert elsewhere is not None
    assert crossed.sentences == 1000
    # A part of 100 texts of all or nothing is off by chance: about 0.4·√(2/π)/10.
    assert crossed.error == pytest.approx(0.03, abs=0.02)
    assert elsewhere.error < 0.04


def test_a_connection_that_cannot_be_is_not_learned() -> None:
    """Where what is improbable came out best, by some accident, nothing is made of it."""
    signs = drawn(500)
    found = fit_confidence(signs, [1 - each for each in expected(signs)])
    assert found.token_probability == found.sentence_probability == found.odd_length == 0


def test_where_all_is_the_same_that_is_what_is_expected() -> None:
    signs = [[Signs(-1.0, 5, 5)]] * 60
    assert fit_confidence(signs, [0.8] * 60).of(Signs(-9.0, 5, 5)) == pytest.approx(0.8)
    assert cross_fitted(signs, [0.8] * 60).error == pytest.approx(0)


def test_the_order_of_texts_does_not_matter() -> None:
    signs = drawn(300)
    scores = noisy(signs)
    one, other = fit_confidence(signs, scores), fit_confidence(signs[::-1], scores[::-1])
    assert one.of(Signs(-3.0, 9, 8)) == pytest.approx(other.of(Signs(-3.0, 9, 8)), abs=1e-5)


@pytest.mark.parametrize("learn", [fit_confidence, cross_fitted])
def test_too_few_texts_are_refused(learn: object) -> None:
    signs = [*drawn(49), [], [Signs(math.nan, 3, 3)]]
    with pytest.raises(InputError, match=r"49 texts are too few .* at least 50"):
        learn(signs, [0.5] * 51)  # type: ignore[operator]


def test_chrf_of_each_sentence() -> None:
    same, other, empty = sentence_chrf(["Wo ist er?", "xyz", ""], ["Wo ist er?", "ab cd", "ab"])
    assert (same, other, empty) == (pytest.approx(1), 0, 0)
