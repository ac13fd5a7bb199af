"""Errors that name the value and the remedy."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from transduce.decoding import DecodingOptions, decode, score
from transduce.errors import ConfigError, InputError, ModelError
from transduce.model import Transformer


@pytest.mark.parametrize(
    ("source", "options", "message"),
    [
        ([[3, 4], [0, 0]], {}, r"sentence 1 of the batch is empty"),
        ([3, 4], {}, r"source ids have shape \[2\].*unsqueeze"),
        ([[3, 99]], {}, r"source id 99 in sequence 0, position 1.*17 ids"),
        ([[3]], {"prefix": [5] * 51}, r"prefix of sentence 0 has 51 tokens, but at most 51.*Shorten"),
        ([[3]], {"prefix": [17]}, r"prefix 0 holds id 17, outside the vocabulary of 17 ids"),
        ([[3]], {"prefix": [4, 2]}, r"prefix of sentence 0 holds the end of sentence, id 2"),
        ([[3], [4], [5]], {"prefix": [[4], [5]]}, r"2 prefixes for 3 sentences"),
        ([[3]], {"suppress": [-1]}, r"suppress 0 holds id -1"),
        ([[3]], {"max_length_ratio": 0.5, "max_length_extra": 0}, r"sentence 0 has 1 tokens.*Raise"),
    ],
)
def test_wrong_input_is_named_with_its_remedy(model: Transformer, source: Any, options: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        decode(model, torch.tensor(source), DecodingOptions(**options))


@pytest.mark.parametrize(
    ("targets", "message"),
    [
        ([], r"1 sources but 0 targets"),
        ([[]], r"target 0 is empty"),
        ([[17]], r"target 0 holds id 17"),
    ],
)
def test_wrong_targets_are_named_with_their_remedy(model: Transformer, targets: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        score(model, torch.tensor([[3]]), targets)


def test_ids_must_be_a_tensor(model: Transformer) -> None:
    with pytest.raises(InputError, match=r"source ids are a list\. Give a tensor"):
        decode(model, [[3, 4]])  # type: ignore[arg-type]
    with pytest.raises(InputError, match=r"target ids are a list\. Give a tensor"):
        model(torch.tensor([[3]]), [[1]])


def test_a_diverged_model_is_reported(model: Transformer) -> None:
    with torch.no_grad():
        model.projection.weight[5] = float("nan")
    with pytest.raises(ModelError, match=r"not a number.*earlier checkpoint"):
        decode(model, torch.tensor([[3, 4]]))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"beam": 0}, r"beam=0 cannot work\. It must be a whole number, 1 or more"),
        ({"beam": 2.5}, r"beam=2.5 cannot work"),
        ({"n_best": 0}, r"n_best=0"),
        ({"n_best": 5}, r"n_best=5 asks for more hypotheses than beam=4 keeps\. Use beam=5"),
        ({"length_penalty": "gnm"}, r"length_penalty='gnm' is unknown\. Did you mean 'gnmt'"),
        ({"max_length_extra": -1}, r"max_length_extra=-1"),
        ({"max_length_extra": 0, "max_length_ratio": 0}, r"leave no token"),
        ({"repetition_penalty": 0}, r"repetition_penalty=0.*1 is off"),
        ({"sampling": True, "temperature": 0}, r"temperature=0.*beam=1"),
        ({"sampling": True, "top_p": 1.5}, r"top_p=1.5"),
        ({"top_k": 5}, r"top_k=5 has no effect with sampling=False"),
        ({"temperature": 0.5}, r"temperature=0.5 has no effect with sampling=False"),
        ({"min_length": -3}, r"min_length=-3"),
    ],
)
def test_wrong_options_are_named_with_their_remedy(options: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        DecodingOptions(**options)


def test_an_unknown_option_is_answered_with_the_nearest() -> None:
    with pytest.raises(ConfigError, match=r"'beams' is not a decoding option\. Did you mean 'beam'"):
        DecodingOptions().replace(beams=3)
