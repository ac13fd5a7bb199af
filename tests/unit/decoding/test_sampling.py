"""Sampling: the right frequencies, reproducible, and restricted as asked."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
import torch

from transduce.decoding import DecodingOptions, decode
from transduce.decoding.choice import pick
from transduce.model import Transformer

EOS = 2
FIRST = {3: 0.6, 4: 0.3, EOS: 0.1}


def frequencies(stepper: Any, **options: Any) -> dict[int, float]:
    """How often each first token is drawn, over 4,000 samples."""
    drawn = decode(stepper, torch.tensor([[3]]), DecodingOptions(sampling=True, n_best=4000, **options))[0]
    assert len(drawn) == 4000
    counts = Counter(hypothesis.tokens[0] for hypothesis in drawn)
    return {token: count / 4000 for token, count in counts.items()}


def test_tokens_are_drawn_as_often_as_they_are_probable(scripted: type[Any]) -> None:
    assert frequencies(scripted({(): FIRST})) == pytest.approx(FIRST, abs=0.03)


def test_temperature_sharpens_and_flattens(scripted: type[Any]) -> None:
    squares = {token: probability**2 for token, probability in FIRST.items()}
    expected = {token: square / sum(squares.values()) for token, square in squares.items()}
    assert frequencies(scripted({(): FIRST}), temperature=0.5) == pytest.approx(expected, abs=0.03)


def test_top_k_keeps_the_k_most_probable(scripted: type[Any]) -> None:
    assert frequencies(scripted({(): FIRST}), top_k=2) == pytest.approx({3: 2 / 3, 4: 1 / 3}, abs=0.03)
    assert frequencies(scripted({(): FIRST}), top_k=1) == {3: 1.0}


def test_top_p_keeps_the_fewest_that_reach_the_share(scripted: type[Any]) -> None:
    assert frequencies(scripted({(): FIRST}), top_p=0.55) == {3: 1.0}
    assert frequencies(scripted({(): FIRST}), top_p=0.8) == pytest.approx({3: 2 / 3, 4: 1 / 3}, abs=0.03)
    assert set(frequencies(scripted({(): FIRST}), top_p=0.95)) == {3, 4, EOS}


def test_a_seed_gives_the_same_samples_and_another_gives_others(model: Transformer, source_ids: torch.Tensor) -> None:
    options = DecodingOptions(sampling=True, n_best=2, seed=7)
    assert decode(model, source_ids, options) == decode(model, source_ids, options)
    assert decode(model, source_ids, options) != decode(model, source_ids, options.replace(seed=8))


def test_samples_of_a_sentence_differ(model: Transformer, source_ids: torch.Tensor) -> None:
    for samples in decode(model, source_ids, DecodingOptions(sampling=True, n_best=5)):
        assert len({tuple(hypothesis.tokens) for hypothesis in samples}) == 5


def test_sampling_from_one_token_is_greedy_search(model: Transformer, source_ids: torch.Tensor) -> None:
    sampled = decode(model, source_ids, DecodingOptions(sampling=True, top_k=1))
    greedy = decode(model, source_ids, DecodingOptions(beam=1))
    assert [best.tokens for (best,) in sampled] == [best.tokens for (best,) in greedy]


@pytest.mark.parametrize(("number", "token"), [(0.0, 1), (0.69, 1), (0.71, 2), (0.999999999, 2), (1.0, 2)])
def test_an_impossible_token_is_never_picked(number: float, token: int) -> None:
    log_probs = torch.tensor([0.0, 0.7, 0.3, 0.0]).log()
    assert pick(log_probs, torch.tensor(number, dtype=torch.double)).item() == token
