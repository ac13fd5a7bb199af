"""What a model takes over of another: every weight that both have, by what it is and not by its name."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from transduce.bundle import Bundle
from transduce.errors import ConfigError
from transduce.model.family import Network, config_class, make_network
from transduce.text import Tokenizer
from transduce.training.events import Transferred
from transduce.training.recipe import Recipe
from transduce.training.transfer import transfer

SMALL = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 2, "decoder_layers": 2}
TASKS: dict[str, Any] = {
    "transformer": "translation",
    "encoder-only": "masked-language-model",
    "decoder-only": "language-model",
    "vision": "image-classification",
}
# Pre-norm and relative positions, so that norms at the end and tables of positions have to find their place too.
KIND = {"norm_position": "pre", "positions": "relative", "attention_bias": True}


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(["We painted the house.", "They repaired the bicycles!"], 300)


@pytest.fixture
def old(write_model: Callable[..., Bundle], tokenizer: Tokenizer) -> Callable[..., Bundle]:
    def old(network: Network, **shape: Any) -> Bundle:
        vocabulary = None if network == "vision" else tokenizer
        return write_model(network, TASKS[network], vocabulary, **({"tying": "all"} | KIND | shape))

    return old


@pytest.fixture
def new(tokenizer: Tokenizer) -> Callable[..., nn.Module]:
    def new(network: Network, **shape: Any) -> nn.Module:
        config = config_class(network).tiny(tokenizer.size, **(SMALL | KIND | shape))
        return make_network(network, asdict(config)).eval()

    return new


Old, New = Callable[..., Bundle], Callable[..., nn.Module]


def move(bundle: Bundle, module: nn.Module, network: Network) -> tuple[Transferred, dict[str, Tensor]]:
    """What was said, and the tensors that were not the other's: as they were before, or the test fails."""
    before = {name: value.clone() for name, value in module.state_dict().items()}
    said = transfer(bundle, module, network)
    after = module.state_dict()
    tied = {value.data_ptr() for name, value in after.items() if name not in said.fresh}
    for name in said.fresh:
        assert after[name].data_ptr() in tied or torch.equal(after[name], before[name]), name
    return said, after


IDS = torch.tensor([[5, 9, 30, 31, 2], [8, 7, 2, 0, 0]])


def test_the_same_network_becomes_the_same_model(old: Old, new: New) -> None:
    for network in ("transformer", "encoder-only", "decoder-only"):
        bundle, module = old(network), new(network)
        said, _ = move(bundle, module, network)
        assert said.fresh == []
        inputs = (IDS, IDS[:, :3]) if network == "transformer" else (IDS,)
        assert torch.equal(module(*inputs), bundle.module()(*inputs))


def test_an_encoder_alone_becomes_a_transformers_encoder(old: Old, new: New) -> None:
    bundle, module = old("encoder-only"), new("transformer")
    said, _ = move(bundle, module, "transformer")
    assert torch.equal(module.encode(IDS)[0], bundle.module().hidden(IDS))
    assert any(name.startswith("decoder.") for name in said.fresh)
    assert not any(name.startswith(("encoder.", "source_embedding.")) for name in said.fresh)


def test_a_transformers_encoder_becomes_one_that_stands_alone(old: Old, new: New) -> None:
    bundle = old("transformer")
    for head in ({"head": "masked"}, {"head": "sentence", "labels": 3}):
        module = new("encoder-only", **head)
        said, _ = move(bundle, module, "encoder-only")
        expected = bundle.model().encode(IDS)[0]
        if head["head"] == "masked":
            assert torch.equal(module.hidden(IDS), expected)
        else:
            assert said.fresh == ["projection.weight"]
            torch.testing.assert_close(module.hidden(IDS)[0, 0], expected[0].mean(0))


def test_a_decoder_alone_becomes_a_transformers_decoder_and_back(old: Old, new: New) -> None:
    alone, whole = old("decoder-only"), old("transformer", tying="target")
    module = new("transformer", tying="target")
    said, state = move(alone, module, "transformer")
    theirs = alone.module().state_dict()
    for name, value in theirs.items():
        ours = {"embedding.": "target_embedding.", "layers.": "decoder.layers.", "norm.": "decoder.norm.",
                "positions.": "decoder.positions.", "projection.": "projection."}  # fmt: skip
        (part,) = [part for part in ours if name.startswith(part)]
        assert torch.equal(state[ours[part] + name.removeprefix(part)], value), name
    assert all("cross_attention" in name or name.startswith(("encoder.", "source_")) for name in said.fresh)

    module = new("decoder-only")
    said, state = move(whole, module, "decoder-only")
    assert said.fresh == []
    assert torch.equal(
        state["layers.1.feedforward.inner.weight"], whole.model().decoder.layers[1].feedforward.inner.weight
    )
    assert torch.equal(state["embedding.tokens.weight"], whole.model().target_embedding.tokens.weight)


def test_an_encoder_alone_becomes_a_decoder_alone_and_back(old: Old, new: New) -> None:
    for one, other in (("encoder-only", "decoder-only"), ("decoder-only", "encoder-only")):
        bundle, module = old(one), new(other)
        _, state = move(bundle, module, other)
        layers = {"encoder-only": "encoder.layers.", "decoder-only": "layers."}
        for name, value in bundle.module().state_dict().items():
            if name.startswith(layers[one]):
                assert torch.equal(state[layers[other] + name.removeprefix(layers[one])], value), name


def test_what_has_another_shape_stays_as_drawn(old: Old, new: New) -> None:
    bundle, module = old("encoder-only"), new("encoder-only", d_ff=64)
    said, _ = move(bundle, module, "encoder-only")
    assert {name.split(".")[3] for name in said.fresh} == {"feedforward"}


def test_fewer_layers_take_the_first_ones(old: Old, new: New) -> None:
    said, _ = move(old("encoder-only"), new("encoder-only", encoder_layers=1), "encoder-only")
    assert said.fresh == []


@pytest.mark.parametrize(
    ("network", "into", "shape"),
    [
        ("transformer", "vision", {"d_model": 16}),
        ("decoder-only", "vision", {"d_model": 16}),
        ("vision", "transformer", {"d_model": 16}),
        ("encoder-only", "encoder-only", {"d_model": 32}),
        ("transformer", "decoder-only", {"d_model": 32}),
    ],
)
def test_where_nothing_fits_it_is_said_clearly(
    old: Old, new: New, network: Network, into: Network, shape: dict[str, Any]
) -> None:
    bundle = old(network)
    with pytest.raises(ConfigError, match=rf"nothing of the {network} model there fits into a {into} model") as caught:
        transfer(bundle, new(into, **shape), into)
    assert caught.value.where == str(bundle.path)
    assert caught.value.remedy


# The shape is taken over too


@pytest.mark.parametrize("task", ["classification", "language-model", "translation", "masked-language-model"])
@pytest.mark.parametrize("network", ["transformer", "encoder-only", "decoder-only"])
def test_a_recipe_shaped_as_another_model_has_layers_that_fit_it(
    old: Old, tokenizer: Tokenizer, network: Network, task: str
) -> None:
    bundle = old(network)
    recipe = Recipe.of({"task": task, "model": {"dropout": 0.3, "d_model": 64}})
    shaped = recipe.shaped_as(network, bundle.config.architecture)
    assert shaped.model["dropout"] == 0.3
    labels = {"labels": 3} if task == "classification" else {}
    module = make_network(shaped.family, asdict(shaped.config(tokenizer.size, **labels)))
    said = transfer(bundle, module, shaped.family)
    parts = (f".{name}".partition(".layers.")[2] for name, _ in module.named_parameters())
    layers = {part.split(".")[0] for part in parts if part}
    assert layers == {"0", "1"}
    assert said.taken > 10
