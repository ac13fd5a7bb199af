"""Presets, overrides, and errors that name the value and the remedy."""

from __future__ import annotations

from dataclasses import FrozenInstanceError
from typing import Any

import pytest

from transduce.errors import ConfigError, TransduceError
from transduce.model import TransformerConfig


def test_the_defaults_are_the_papers_base_model() -> None:
    config = TransformerConfig(vocab_size=37_000)
    assert config == TransformerConfig.base(vocab_size=37_000)
    assert (config.encoder_layers, config.decoder_layers) == (6, 6)
    assert (config.d_model, config.d_ff, config.heads) == (512, 2048, 8)
    assert (config.key_width, config.value_width, config.dropout) == (64, 64, 0.1)
    assert (config.norm_position, config.positions, config.activation) == ("post", "sinusoidal", "relu")
    assert (config.attention_dropout, config.activation_dropout, config.attention_bias) == (0, 0, False)
    assert (config.tying, config.scale_embeddings) == ("all", True)


def test_big_is_the_papers() -> None:
    config = TransformerConfig.big(vocab_size=37_000)
    assert (config.d_model, config.d_ff, config.heads, config.key_width) == (1024, 4096, 16, 64)
    assert (config.encoder_layers, config.decoder_layers, config.dropout) == (6, 6, 0.3)


def test_presets_take_overrides_of_any_field() -> None:
    config = TransformerConfig.tiny(100, norm_position="pre", positions="rotary", encoder_layers=12, d_model=64)
    assert (config.norm_position, config.positions, config.encoder_layers, config.d_model) == ("pre", "rotary", 12, 64)
    assert config.replace(heads=2).heads == 2


def test_a_config_cannot_be_changed() -> None:
    with pytest.raises(FrozenInstanceError):
        TransformerConfig.tiny(100).heads = 3  # type: ignore[misc]


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"heads": 3}, r"d_model=128 is not divisible by heads=3\. Use heads=4"),
        ({"heads": 0}, r"heads=0 cannot work.*whole number, 1 or more"),
        ({"heads": 4.0}, r"heads=4.0 cannot work.*whole number"),
        ({"d_k": "8"}, r"d_k='8' cannot work"),
        ({"heads": 4, "key_value_heads": 3}, r"heads=4 is not divisible by key_value_heads=3"),
        ({"positions": "rotery"}, r"positions='rotery' is unknown\. Did you mean 'rotary'\?.*sinusoidal"),
        ({"activation": "relu2"}, r"activation='relu2' is unknown\. Did you mean 'relu'"),
        ({"norm_position": "before"}, r"norm_position='before' is unknown\. Valid: post, pre"),
        ({"encoder_layer": 3}, r"'encoder_layer' is not a setting.*Did you mean 'encoder_layers'"),
        ({"encoder_layers": -1}, r"encoder_layers=-1 cannot work.*0 or more"),
        ({"dropout": 1.0}, r"dropout=1.0 is not a probability below 1"),
        ({"attention_dropout": -0.1}, r"attention_dropout=-0.1"),
        ({"norm_epsilon": 0.0}, r"norm_epsilon=0.0"),
        ({"vocab_size": 0}, r"vocab_size=0 cannot work"),
        ({"pad_id": 100}, r"pad_id=100 lies outside the vocabulary of 100 ids.*0 to 99"),
        ({"eos_id": 0}, r"eos_id=0 is also pad_id"),
        ({"decoder_heads": 3}, r"d_model=128 is not divisible by heads=3\. Use heads=4"),
        ({"decoder_d_ff": 0}, r"decoder_d_ff=0 cannot work"),
        ({"heads": 10**6}, r"heads=1000000\. Use heads=1,"),
        ({"target_vocab_size": 50, "tying": "embeddings"}, r"tying='embeddings'.*target_vocab_size=50"),
        ({"target_vocab_size": 50}, r"tying='all'.*target_vocab_size=50.*tying='target'"),
        ({"d_model": 9, "heads": 3}, r"d_model=9 is odd.*d_model=10"),
        ({"positions": "rotary", "d_k": 7}, r"d_k=7 is odd"),
        ({"relative_buckets": 30}, r"relative_buckets=30.*multiple of 4"),
        ({"relative_max_distance": 16}, r"relative_max_distance=16.*relative_max_distance=128"),
    ],
)
def test_wrong_settings_are_named_with_their_remedy(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        TransformerConfig.tiny(**{"vocab_size": 100, **overrides})
    assert isinstance(caught.value, TransduceError)
    assert isinstance(caught.value, ValueError)
