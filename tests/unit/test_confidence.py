"""Confidence: what a hypothesis's signs say of it, and what a file may say of confidence."""

from __future__ import annotations

import json
import math
from dataclasses import asdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.confidence import Confidence, Signs, mean_confidence
from transduce.errors import ConfigError

PLAIN = Confidence(
    base=0.1,
    token_probability=0.6,
    sentence_probability=0.2,
    length=0.05,
    odd_length=-0.1,
    usual_ratio=0.0,
    shortest=2,
    longest=20,
)


def test_it_is_the_weighted_sum_of_the_signs() -> None:
    # Four tokens of probability ½ each, of five read.
    expected = 0.1 + 0.6 * 0.5 + 0.2 * 0.5**4 + 0.05 * math.log(4) - 0.1 * math.log(5 / 4)
    assert PLAIN.of(Signs(4 * math.log(0.5), 4, 5)) == pytest.approx(expected)


@given(st.floats(-500, 0), st.floats(0, 100), st.integers(1, 600), st.integers(1, 600))
def test_it_is_a_share_and_more_probable_is_never_less_confident(
    log_probability: float, more: float, written: int, read: int
) -> None:
    less = PLAIN.of(Signs(log_probability - more, written, read))
    likelier = PLAIN.of(Signs(log_probability, written, read))
    assert less is not None
    assert likelier is not None
    assert 0 <= less <= likelier <= 1


def test_beyond_the_lengths_of_the_dev_set_length_says_no_more() -> None:
    """At the same probability of a token; that of the sentence is nearly 0 for all of them."""
    found = [PLAIN.of(Signs(-2.0 * length, length, length)) for length in (20, 50, 400)]
    assert found[1:] == pytest.approx(found[:1] * 2)
    assert (PLAIN.of(Signs(-40, 10, 10)) or 1) < (found[0] or 0)


def test_a_translation_that_runs_on_is_doubted() -> None:
    usual, endless = (PLAIN.of(Signs(-0.3 * written, written, 8)) for written in (20, 58))
    assert usual is not None
    assert endless is not None
    assert endless < usual - 0.08


@pytest.mark.parametrize(
    "signs",
    [Signs(math.nan, 3, 3), Signs(-math.inf, 3, 3), Signs(math.inf, 3, 3), Signs(-1.0, 0, 3), Signs(-1.0, 3, 0)],
)
def test_without_usable_signs_there_is_none(signs: Signs) -> None:
    assert PLAIN.of(signs) is None


def test_that_of_a_text_is_the_mean_by_length() -> None:
    assert mean_confidence([(0.2, 10), (0.8, 30)]) == pytest.approx(0.65)
    assert mean_confidence([(0.2, 10), (None, 0)]) == 0.2
    assert mean_confidence([(0.2, 10), (None, 3)]) is None
    assert mean_confidence([(None, 0)]) is None
    assert mean_confidence([]) is None


def test_what_is_written_to_a_file_comes_back() -> None:
    assert Confidence.parse(json.loads(json.dumps(asdict(PLAIN)))) == PLAIN


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"token_probability": -0.1}, "token_probability is -0.1. It must be 0 or more"),
        ({"sentence_probability": -1}, "sentence_probability is -1. It must be 0 or more"),
        ({"odd_length": 0.5}, "odd_length is 0.5. It must be 0 or less"),
        ({"base": "0.1"}, "base is '0.1'. It must be a number"),
        ({"base": True}, "base is True. It must be a number"),
        ({"base": None}, "base is None"),
        ({"length": math.nan}, "length is nan"),
        ({"length": math.inf}, "length is inf"),
        ({"usual_ratio": 10**400}, "usual_ratio is 1000"),
        ({"usual_ratio": 10**9000}, "usual_ratio is (a huge number|1000)"),
        ({"shortest": 0}, "shortest is 0. It must be 1 or more"),
        ({"shortest": 2.5}, "shortest is 2.5. It must be a whole number"),
        ({"longest": 1}, "longest is 1. It must be shortest or more"),
        ({"longest": [20]}, r"longest is \[20\]"),
        ({"beauty": 1.0}, "is not complete. It has: base, token_probability"),
    ],
)
def test_wrong_values_are_refused(changes: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words):
        Confidence.parse(asdict(PLAIN) | changes)


@pytest.mark.parametrize("values", [{}, [], "0.7", 0.7, {"base": 0.1}])
def test_what_is_no_confidence_at_all_is_refused(values: Any) -> None:
    with pytest.raises(ConfigError, match="is not complete"):
        Confidence.parse(values)
