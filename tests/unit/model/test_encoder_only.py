"""The encoder alone: what its three heads say of a text depends on the text only."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
import torch.nn.functional as F

from transduce.errors import ConfigError, InputError
from transduce.model.encoder_only import EncoderConfig, EncoderOnly

VOCABULARY = 17
HEADS: list[dict[str, Any]] = [{"head": "masked"}, {"head": "sentence", "labels": 3}, {"head": "token", "labels": 2}]
HEADS += [{"head": "masked", "head_transform": True, "embedding_norm": True, "logits_bias": True}]
HEADS += [{"head": "sentence", "labels": 3, "pooling": "first", "logits_bias": True}]  # these two are BERT's
POSITIONS = ["sinusoidal", "learned", "rotary", "relative", "alibi", "none"]
LENGTHS = (7, 5, 1)

every_head = pytest.mark.parametrize("head", HEADS, ids=lambda head: head["head"])
every_position = pytest.mark.parametrize("positions", POSITIONS)


@pytest.fixture
def make() -> Callable[..., EncoderOnly]:
    def make(**overrides: Any) -> EncoderOnly:
        shape = {"encoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 4}
        model = EncoderOnly(EncoderConfig.tiny(VOCABULARY, **(shape | overrides))).eval()
        with torch.no_grad():
            for parameter in model.parameters():
                parameter.add_(torch.randn_like(parameter) * 0.1)
        return model

    return make


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@every_head
@every_position
def test_padding_and_batch_change_nothing(
    make: Callable[..., EncoderOnly], source_ids: torch.Tensor, head: dict[str, Any], positions: str
) -> None:
    model = make(positions=positions, **head)
    together = model(F.pad(source_ids, (0, 4)))
    for row, length in enumerate(LENGTHS):
        alone = model(source_ids[row : row + 1, :length])
        close(together[row, : alone.size(1)], alone[0])


@every_head
def test_logits_are_as_many_as_the_head_promises(
    make: Callable[..., EncoderOnly], source_ids: torch.Tensor, head: dict[str, Any]
) -> None:
    places, width = {"masked": (7, VOCABULARY), "sentence": (1, 3), "token": (7, 2)}[head["head"]]
    model = make(**head)
    assert model(source_ids).shape == (3, places, width)
    assert model.config.output_size == width


@every_head
def test_gradients_reach_every_parameter(
    make: Callable[..., EncoderOnly], source_ids: torch.Tensor, head: dict[str, Any]
) -> None:
    model = make(positions="relative", relative_buckets=4, **head)
    model(source_ids).sin().sum().backward()
    assert all(parameter.grad is not None and parameter.grad.abs().sum() > 0 for parameter in model.parameters())


def test_a_text_is_named_by_the_mean_over_its_real_tokens(
    make: Callable[..., EncoderOnly], source_ids: torch.Tensor
) -> None:
    """Logits = W · (y₁ + … + yₙ) / n, the y being what the same encoder says of each token."""
    whole, each = make(head="sentence", labels=3), make(head="token", labels=3)
    each.load_state_dict(whole.state_dict())
    outputs = each.hidden(source_ids)
    for row, length in enumerate(LENGTHS):
        total = torch.zeros(16)
        for place in range(length):
            total += outputs[row, place]
        close(whole(source_ids)[row, 0], whole.projection.weight @ (total / length))


def test_every_token_sees_what_comes_before_and_after(
    make: Callable[..., EncoderOnly], source_ids: torch.Tensor
) -> None:
    model = make()
    changed = source_ids.clone()
    changed[0, 3] = 3 + (changed[0, 3] - 2) % (VOCABULARY - 3)
    moved = (model(changed) - model(source_ids))[0].abs().amax(-1)
    assert (moved > 1e-4).all()


def test_attention_is_recorded_and_padding_gets_none(
    make: Callable[..., EncoderOnly], source_ids: torch.Tensor
) -> None:
    model = make(head="sentence", labels=3)
    logits, record = model.with_attention(source_ids)
    close(logits, model(source_ids))
    assert [weights.shape for weights in record.encoder] == [(3, 4, 7, 7)] * 2
    assert (record.encoder[0][1, :, :, 5:] == 0).all()
    close(record.encoder[1].sum(-1), torch.ones(3, 4, 7))


def test_a_masked_token_is_told_by_the_table_that_tokens_are_read_with_unless_untied(
    make: Callable[..., EncoderOnly],
) -> None:
    tied, apart = make(), make(tying="none")
    assert tied.projection.weight is tied.embedding.tokens.weight
    assert apart.projection.weight is not apart.embedding.tokens.weight


def test_wrong_ids_are_named(make: Callable[..., EncoderOnly]) -> None:
    with pytest.raises(InputError, match=r"text id 17 in sequence 0, position 0"):
        make()(torch.tensor([[17]]))


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        ({"head": "sentense", "labels": 2}, r"head='sentense' is unknown\. Did you mean 'sentence'\?"),
        ({"head": "sentence"}, "head='sentence' and labels=None do not go together"),
        ({"head": "token", "labels": 0}, "head='token' and labels=0 do not go together"),
        ({"head": "masked", "labels": 2}, "head='masked' and labels=2 do not go together"),
        ({"lables": 2}, r"'lables' is not a setting of the model\. Did you mean 'labels'\?"),
        ({"heads": 3}, "not divisible by heads=3"),
    ],
)
def test_what_cannot_work_is_named_with_its_remedy(overrides: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        EncoderConfig.tiny(VOCABULARY, **overrides)
    assert caught.value.remedy


def test_there_may_be_fewer_labels_than_special_ids() -> None:
    assert EncoderConfig.tiny(VOCABULARY, head="sentence", labels=1).output_size == 1
