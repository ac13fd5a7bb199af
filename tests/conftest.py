"""Small models and batches that many tests share."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from hypothesis import settings

from transduce.model import Transformer, TransformerConfig

VOCABULARY = 17


# The same examples in every run: a test that fails on one machine fails on all.
settings.register_profile("deterministic", derandomize=True, deadline=None)
settings.load_profile("deterministic")

# Tensors this small gain nothing from threads, and one thread adds numbers in the same order on every machine.
torch.set_num_threads(1)


@pytest.fixture(autouse=True)
def _seed() -> None:
    torch.manual_seed(0)


@pytest.fixture
def make_model() -> Callable[..., Transformer]:
    """A small random model in evaluation mode; untied, so that what it writes is not just what it read."""

    def make(**overrides: Any) -> Transformer:
        defaults = {"encoder_layers": 2, "decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 4, "tying": "none"}
        config = TransformerConfig.tiny(**{"vocab_size": VOCABULARY, **defaults, **overrides})
        model = Transformer(config).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # biases and norms too, so that none can be forgotten unnoticed
                if parameter.dim() == 1:
                    parameter.add_(torch.randn_like(parameter) * 0.1)
        return model

    return make


@pytest.fixture
def model(make_model: Callable[..., Transformer]) -> Transformer:
    return make_model()


@pytest.fixture
def source_ids() -> torch.Tensor:
    """Three sentences of 7, 5 and 1 tokens."""
    ids = torch.randint(3, VOCABULARY, (3, 7))
    ids[1, 5:] = 0
    ids[2, 1:] = 0
    return ids


@pytest.fixture
def target_ids() -> torch.Tensor:
    ids = torch.randint(3, VOCABULARY, (3, 6))
    ids[:, 0] = 1
    return ids
