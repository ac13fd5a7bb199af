"""Consensus: chrF as sacreBLEU's, and the candidate that the others agree with."""

from __future__ import annotations

import math

import numpy as np
import pytest
import sacrebleu
from hypothesis import given
from hypothesis import strategies as st

from transduce.evaluation.consensus import agreement, by_consensus

SENTENCES = [
    "Wo ist der Bahnhof?",
    "Wo ist denn der Bahnhof?",
    "Der Bahnhof ist wo?",
    "ja",
    "",
    "  ",
    "Ça va, où est la gare ?",
    "駅はどこですか。",
    "aaaaaaaaaaaa",
]


def sacrebleus(texts: list[str]) -> np.ndarray:
    return np.array([[sacrebleu.sentence_chrf(text, [other], beta=1).score for other in texts] for text in texts])


def test_agreement_is_sacrebleus_sentence_chrf() -> None:
    np.testing.assert_allclose(agreement(SENTENCES), sacrebleus(SENTENCES), rtol=0, atol=1e-6)


@given(st.lists(st.text(alphabet="ab é.駅 ", max_size=12), min_size=1, max_size=4))
def test_agreement_is_sacrebleus_for_any_text(texts: list[str]) -> None:
    np.testing.assert_allclose(agreement(texts), sacrebleus(texts), rtol=0, atol=1e-6)


def test_the_candidate_that_most_agree_with_comes_first() -> None:
    texts = ["Das weiß ich nicht.", "Er ging nach Hause.", "Er ging dann nach Hause.", "Dann ging er nach Hause."]
    order = by_consensus(texts)
    means = sacrebleus(texts).mean(axis=1)
    assert order == sorted(range(4), key=lambda place: -means[place])
    assert order[-1] == 0


def test_a_probable_candidate_counts_for_more() -> None:
    texts = ["Das weiß ich nicht.", "Er ging nach Hause.", "Er ging heim nach Hause."]
    assert by_consensus(texts)[-1] == 0
    assert by_consensus(texts, [math.log(share) for share in (0.9, 0.05, 0.05)])[0] == 0


def test_equal_candidates_keep_their_order() -> None:
    assert by_consensus(["gut", "gut", "gut"], [-1.0, -1.0, -3.0]) == [0, 1, 2]
    assert by_consensus(["xyz", "abc"]) == [0, 1]


@pytest.mark.parametrize("texts", [[], ["allein"]])
def test_where_nothing_is_to_be_chosen_nothing_is_changed(texts: list[str]) -> None:
    assert by_consensus(texts) == list(range(len(texts)))
