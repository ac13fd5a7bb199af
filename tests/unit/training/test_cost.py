"""Counts by arithmetic against networks that are really built and run."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.utils.flop_counter import FlopCounterMode

from transduce.errors import ConfigError
from transduce.model.family import Config, Network, config_class, make_network
from transduce.model.recurrent import RecurrentConfig
from transduce.training.cost import Anatomy, Load, anatomy, kept_numbers, optimizer_numbers, step_flops
from transduce.training.optimise import make_optimizer
from transduce.training.recipe import TrainingRecipe

Shape = tuple[Network, dict[str, Any]]
SMALL = {"d_model": 64, "d_ff": 160, "heads": 4, "encoder_layers": 3, "decoder_layers": 2}
SHAPES: list[Shape] = [
    ("transformer", {}),
    ("transformer", {"norm_position": "pre", "activation": "gelu", "attention_bias": True, "tying": "none"}),
    ("transformer", {"norm": "rms", "norm_position": "pre", "activation": "geglu", "positions": "relative"}),
    ("transformer", {"target_vocab_size": 70, "tying": "target", "decoder_heads": 8, "decoder_d_ff": 96}),
    ("transformer", {"tying": "embeddings", "key_value_heads": 2, "d_k": 10, "d_v": 6, "embedding_norm": True}),
    ("transformer", {"positions": "learned", "max_length": 50, "feedforward_bias": False, "logits_bias": True}),
    ("transformer", {"attention_dropout": 0.1, "activation_dropout": 0.1, "activation": "swiglu"}),
    ("transformer", {"encoder_layers": 0, "dropout": 0.0}),
    ("decoder-only", {"norm_position": "pre", "positions": "rotary", "activation": "gelu"}),
    ("decoder-only", {"positions": "relative", "tying": "none"}),
    ("encoder-only", {"head_transform": True, "embedding_norm": True}),
    ("encoder-only", {"head": "sentence", "labels": 5, "pooling": "first", "logits_bias": True}),
    ("encoder-only", {"head": "token", "labels": 4, "positions": "learned", "max_length": 30, "norm_position": "pre"}),
    ("vision", {"positions": "learned", "max_length": 30, "norm_position": "pre", "labels": 7, "logits_bias": True}),
]
B, S, T = 8, 20, 24


def named(shape: Any) -> str:
    return shape if isinstance(shape, str) else "-".join(map(str, shape.values()))


def built(network: Network, changes: dict[str, Any]) -> tuple[Any, Any]:
    config = config_class(network).base(300, **(SMALL | changes))
    torch.manual_seed(0)
    return config, make_network(network, asdict(config)).train()


def inputs(network: Network, config: Any) -> tuple[list[Tensor], Load]:
    """A batch without padding, and what it is to the arithmetic."""
    if network == "vision":
        patches = config.grid[0] * config.grid[1] + 1
        return [torch.randn(B, config.channels, config.height, config.width)], Load(B, patches, asked=B)
    source = torch.randint(4, 300, (B, S))
    if network == "transformer":
        return [source, torch.randint(4, config.output_size, (B, T))], Load(B, S, T, asked=B * T)
    asked = B if getattr(config, "head", "") == "sentence" else B * S
    return [source], Load(B, S, asked=asked)


@pytest.mark.parametrize(("network", "changes"), SHAPES, ids=named)
def test_parameters_are_those_of_the_network(network: Network, changes: dict[str, Any]) -> None:
    config, model = built(network, changes)
    assert anatomy(network, config).parameters == sum(parameter.numel() for parameter in model.parameters())


def test_the_papers_models_have_the_parameters_worked_out_by_hand() -> None:
    """Layers by the paper's equations, one matrix of 37,000 words for both embeddings and the output."""
    shapes = {"base": (512, 2048, 8, 63_045_632), "big": (1024, 4096, 16, 214_171_648)}
    for d_model, d_ff, heads, by_hand in shapes.values():
        config = config_class("transformer").base(37_000, d_model=d_model, d_ff=d_ff, heads=heads)
        assert anatomy("transformer", config).parameters == by_hand


@pytest.mark.parametrize(("network", "changes"), SHAPES, ids=named)
def test_operations_are_those_that_pytorch_counts(network: Network, changes: dict[str, Any]) -> None:
    """Forward and back. Pixels need no gradient, so that the first matrix of a picture's network has a third less."""
    config, model = built(network, changes)
    batch, load = inputs(network, config)
    with FlopCounterMode(display=False) as counter:
        model(*batch).sum().backward()
    counted = step_flops(anatomy(network, config), network, config, load)
    assert counted == pytest.approx(counter.get_total_flops(), rel=0.03)


def test_longer_texts_cost_more_than_their_tokens() -> None:
    """Table 1: attention is quadratic in the length, all the rest is linear."""
    config = config_class("transformer").base(300, **SMALL)
    parts = anatomy("transformer", config)
    once, twice, more = (
        step_flops(parts, "transformer", config, Load(rows, n, n, asked=rows * n))
        for rows, n in ((8, 10), (16, 10), (8, 20))
    )
    assert twice == pytest.approx(2 * once)
    # 6 products of 10 × 10 × 64 a row more in each of 3 + 2 · 2 attentions, QKᵀ and its product with V.
    assert more - twice == pytest.approx(6 * 8 * (20 * 20 - 2 * 10 * 10) * 64 * 2 * 7)


@pytest.mark.parametrize(("network", "changes"), SHAPES, ids=named)
def test_what_is_kept_for_the_way_back_is_what_autograd_keeps(network: Network, changes: dict[str, Any]) -> None:
    config, model = built(network, changes)
    batch, load = inputs(network, config)
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    kept: dict[int, Tensor] = {}

    def keep(tensor: Tensor) -> Tensor:
        if (place := tensor.untyped_storage().data_ptr()) not in own:
            kept[place] = tensor  # which holds on to the place
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        model.hidden(*batch)
    size = sum(tensor.untyped_storage().nbytes() for tensor in kept.values())
    assert 4 * sum(vars(kept_numbers(network, config, load)).values()) == pytest.approx(size, rel=0.1)


@pytest.mark.parametrize("optimizer", ["adam", "adamw", "muon"])
@pytest.mark.parametrize(("network", "changes"), [SHAPES[0], SHAPES[4], SHAPES[8], SHAPES[11], SHAPES[13]], ids=named)
def test_the_optimiser_remembers_as_much(network: Network, changes: dict[str, Any], optimizer: Any) -> None:
    config, model = built(network, changes)
    batch, _ = inputs(network, config)
    model(*batch).sum().backward()
    made = make_optimizer(model, TrainingRecipe(optimizer=optimizer))
    made.step(0.1)
    remembered = sum(tensor.numel() for tensor in made.tensors().values() if tensor.dim())  # not how many steps
    assert optimizer_numbers(anatomy(network, config), optimizer == "muon") == remembered


def test_muons_steps_and_r_drop_are_counted() -> None:
    """R-Drop passes twice; Muon multiplies each matrix of r rows and c columns five times by two of its like."""
    config = config_class("transformer").base(300, **SMALL, tying="all")
    parts, load = anatomy("transformer", config), Load(8, 20, 20, asked=160)
    plain = step_flops(parts, "transformer", config, load)
    assert step_flops(parts, "transformer", config, load, r_drop=True) == 2 * plain
    assert plain - step_flops(parts, "transformer", config, load, compared=100) == 6 * 200 * 64 * 160
    square, wide = 64, 160
    matrices = 5 * (4 * 64**2 * square + 2 * 64**3), 5 * (4 * 64**2 * wide + 2 * 64**3)
    attentions, feedforwards = 3 + 2 * 2, 3 + 2
    expected = 4 * attentions * matrices[0] + 2 * feedforwards * matrices[1]
    assert step_flops(parts, "transformer", config, load, muon=True) - plain == expected


def test_recurrent_networks_are_refused_in_words() -> None:
    config: Config = RecurrentConfig.base(300)
    with pytest.raises(ConfigError, match=r"recurrent networks are not planned\. Plan a Transformer"):
        anatomy("recurrent", config)


def test_parts_of_a_batch_add_up() -> None:
    load = Load(8, 20, 24, asked=192)
    part = load.part(4)
    assert (part.rows, part.source, part.target, part.asked) == (2, 20, 24, 48)
    assert load.read_and_written == 8 * 44
    assert isinstance(anatomy("transformer", config_class("transformer").base(300)), Anatomy)
