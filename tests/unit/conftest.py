"""Model directories of every kind, with random weights."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
from torch import nn

from transduce.bundle import Bundle, BundleConfig, TaskName
from transduce.model.family import Network, config_class, make_network
from transduce.text import Tokenizer, Vocabularies

SMALL = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 2, "tying": "none"}

WriteModel = Callable[..., Bundle]


@pytest.fixture(scope="session")
def write_model(tmp_path_factory: pytest.TempPathFactory) -> WriteModel:
    """A bundle of a network of this name and task; `change` may set its weights, other keywords are of its shape."""

    def write(
        network: Network,
        task: TaskName,
        tokenizer: Tokenizer | None,
        labels: list[str] | None = None,
        change: Callable[[Any], None] = lambda module: None,
        **shape: Any,
    ) -> Bundle:
        size = 3 if tokenizer is None else tokenizer.size
        shape |= {"labels": len(labels)} if labels else {}
        config = config_class(network).tiny(size, **(SMALL | shape))
        module: nn.Module = make_network(network, asdict(config)).eval()
        change(module)
        described = BundleConfig(architecture=asdict(config), network=network, task=task, labels=labels or [])
        weights = {name: value.detach() for name, value in module.named_parameters()}
        vocabularies = None if tokenizer is None else Vocabularies(tokenizer, tokenizer)
        return Bundle.write(tmp_path_factory.mktemp("models") / network, described, weights, vocabularies, {}, "")

    return write
