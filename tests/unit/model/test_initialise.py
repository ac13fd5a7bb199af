"""Starting values: the variances that the rules prescribe."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from transduce.model import Transformer, TransformerConfig


def made(**overrides: Any) -> Transformer:
    config = TransformerConfig.tiny(5000, d_model=128, d_ff=512, heads=4, d_k=16, attention_bias=True)
    return Transformer(config.replace(**overrides))


def test_scaled_embeddings_have_unit_variance() -> None:
    weight = made().source_embedding.tokens.weight
    assert (weight * 128**0.5).std().item() == pytest.approx(1, abs=0.01)


@pytest.mark.parametrize(
    ("overrides", "gains"),
    [
        ({"initialisation": "xavier"}, [1, 1, 1, 1]),
        ({"initialisation": "depth_scaled"}, [1, 2**-0.5, 3**-0.5, 0.5]),
        ({"norm_position": "post"}, [1, 2**-0.5, 3**-0.5, 0.5]),
        ({"norm_position": "pre"}, [1, 1, 1, 1]),
    ],
)
def test_matrices_follow_xaviers_rule_each_by_its_own_size(overrides: dict[str, Any], gains: list[float]) -> None:
    model = made(**overrides)
    for stack in (model.encoder.layers, model.decoder.layers):
        for layer, gain in zip(stack, gains, strict=True):
            query, key, value = torch.split(layer.attention.qkv.weight, layer.attention.widths)
            for matrix in (query, key, value, layer.attention.output.weight, layer.feedforward.inner.weight):
                expected = gain * (2 / sum(matrix.shape)) ** 0.5
                assert matrix.std().item() == pytest.approx(expected, rel=0.05)
            assert not layer.attention.qkv.bias.any()
            assert not layer.feedforward.outer.bias.any()


def test_a_seed_gives_the_same_weights() -> None:
    models = []
    for _ in range(2):
        torch.manual_seed(3)
        models.append(made())
    for ours, theirs in zip(models[0].parameters(), models[1].parameters(), strict=True):
        assert torch.equal(ours, theirs)


@pytest.mark.parametrize("initialisation", ["depth_scaled", "xavier"])
def test_depth_scaling_keeps_gradients_alive_at_depth_12(initialisation: str) -> None:
    """The gradient that reaches the first decoder layer of a deep post-norm model, relative to the last's."""
    config = TransformerConfig.tiny(
        50, d_model=32, heads=4, encoder_layers=12, decoder_layers=12, dropout=0.0, initialisation=initialisation
    )
    model = Transformer(config)
    source, target = torch.randint(3, 50, (8, 12)), torch.randint(3, 50, (8, 12))
    torch.nn.functional.cross_entropy(model(source, target).flatten(0, 1), target.flatten()).backward()
    first, last = (model.decoder.layers[i].feedforward.inner.weight.grad.norm() for i in (0, -1))
    if initialisation == "depth_scaled":
        assert first / last > 1
    else:
        assert first / last < 0.2, "what the scaling is for"
