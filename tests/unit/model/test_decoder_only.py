"""The decoder alone: blind to the future, and the same whether it reads step by step or at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from transduce.decoding import DecodingOptions, Hypothesis, decode
from transduce.errors import InputError
from transduce.model import TransformerConfig
from transduce.model.decoder_only import LanguageModel

VOCABULARY, BOS = 17, 1
KINDS: list[dict[str, Any]] = [
    {"positions": "sinusoidal"},
    {"positions": "learned", "norm_position": "pre", "max_length": 12},
    {"positions": "rotary", "norm_position": "pre", "activation": "gelu"},
    {"positions": "relative", "norm": "rms", "key_value_heads": 2},
    {"positions": "alibi", "attention_bias": True},
    {"positions": "none", "tying": "all"},
]
every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind["positions"])


@pytest.fixture
def make() -> Callable[..., LanguageModel]:
    """A small random model; untied, so that what it writes is not just what it read."""

    def make(**overrides: Any) -> LanguageModel:
        shape = {"decoder_layers": 2, "d_model": 16, "d_ff": 32, "heads": 4, "tying": "none"}
        model = LanguageModel(TransformerConfig.tiny(VOCABULARY, **(shape | overrides))).eval()
        with torch.no_grad():
            for parameter in model.parameters():  # biases and norms too, so that none can be forgotten unnoticed
                parameter.add_(torch.randn_like(parameter) * 0.1)
        return model

    return make


@pytest.fixture
def built(kind: dict[str, Any], make: Callable[..., LanguageModel]) -> LanguageModel:
    return make(**kind)


@pytest.fixture
def ids() -> torch.Tensor:
    """Three texts of eight tokens, the start included."""
    return torch.cat((torch.full((3, 1), BOS), torch.randint(3, VOCABULARY, (3, 7))), dim=1)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def search(model: LanguageModel, prefixes: list[list[int]], **options: Any) -> list[Hypothesis]:
    """The best continuation of each prefix, at most six tokens in all; the source says only how many there are."""
    limits = {"max_length_ratio": 0.0, "max_length_extra": 6}
    found = decode(model, torch.full((len(prefixes), 1), BOS), DecodingOptions(prefix=prefixes, **limits, **options))
    return [best for best, *_ in found]


@every_kind
def test_no_position_sees_a_later_token(built: LanguageModel, ids: torch.Tensor) -> None:
    before = built(ids)
    assert before.shape == (3, 8, VOCABULARY)
    changed = ids.clone()
    changed[:, 5] = (changed[:, 5] + 1) % VOCABULARY
    after = built(changed)
    assert torch.equal(before[:, :5], after[:, :5])
    assert not torch.allclose(before[:, 5:], after[:, 5:], atol=1e-4)


@every_kind
def test_cached_steps_give_the_logits_of_the_whole(built: LanguageModel, ids: torch.Tensor) -> None:
    state = built.prefill(ids, capacity=8)
    steps = [built.step(state, ids[:, place : place + 1]) for place in range(8)]
    close(torch.cat(steps, dim=1), built(ids))


@every_kind
def test_a_prefix_can_be_read_at_once_and_a_second_one_after_it(built: LanguageModel, ids: torch.Tensor) -> None:
    state = built.prefill(ids, capacity=8)
    parts = [built.step(state, ids[:, start:end]) for start, end in ((0, 3), (3, 7), (7, 8))]
    close(torch.cat(parts, dim=1), built(ids))


@every_kind
def test_beams_part_swap_and_leave(built: LanguageModel, ids: torch.Tensor) -> None:
    state = built.prefill(ids, capacity=8)
    built.step(state, ids[:, :4])
    built.reorder(state, torch.tensor([[0, 0], [1, 1], [2, 2]]))
    fifth = torch.tensor([4, 5, 6, 7, 8, 9])
    built.step(state, fifth.unsqueeze(1))
    built.reorder(state, torch.tensor([[3, 2], [4, 4]]))  # the first text is done
    last = torch.tensor([[3], [4], [5], [6]])
    texts = torch.cat((ids[[1, 1, 2, 2], :4], fifth[[3, 2, 4, 4], None], last), dim=1)
    close(built.step(state, last)[:, 0], built(texts)[:, -1])


@every_kind
def test_a_text_does_not_depend_on_its_batch(built: LanguageModel, ids: torch.Tensor) -> None:
    together = built(ids)
    for row in range(3):
        close(built(ids[row : row + 1]), together[row : row + 1])


@every_kind
def test_gradients_reach_every_parameter(built: LanguageModel, ids: torch.Tensor) -> None:
    built(ids).sin().sum().backward()
    for name, parameter in built.named_parameters():
        assert parameter.grad is not None, name
        if name != "embedding.positions.weight":  # of which some stand behind the text
            assert parameter.grad.abs().sum() > 0, name


@every_kind
def test_greedy_search_is_a_beam_of_one_is_the_likeliest_token_each_time(built: LanguageModel) -> None:
    best = search(built, [[5, 9]], beam=1)[0]
    text = [5, 9]
    while len(text) < 5 and text[-1] != built.eos_id:
        text.append(int(built(torch.tensor([[BOS, *text]]))[0, -1].argmax()))
    text += [built.eos_id] * (text[-1] != built.eos_id)  # where it must end
    assert best.tokens == text


@every_kind
@pytest.mark.parametrize("options", [{"beam": 1}, {"beam": 3}, {"sampling": True, "seed": 4}], ids=str)
def test_prefixes_of_different_lengths_in_one_batch_are_continued_as_each_alone(
    built: LanguageModel, options: dict[str, Any]
) -> None:
    prefixes = [[5], [4, 8, 12, 3], [], [7, 7]]
    for prefix, found in zip(prefixes, search(built, prefixes, **options), strict=True):
        (alone,) = search(built, [prefix], **options)
        assert found.tokens[: len(prefix)] == prefix
        assert found.tokens == alone.tokens
        assert found.log_probability == pytest.approx(alone.log_probability, abs=1e-4)


def test_the_log_probability_of_a_text_is_that_of_all_its_tokens(make: Callable[..., LanguageModel]) -> None:
    model = make(positions="rotary")
    best = search(model, [[5, 9, 4]], beam=2)[0]
    logs = model(torch.tensor([[BOS, *best.tokens[:-1]]])).log_softmax(-1)[0]
    chosen = logs[range(len(best.tokens)), best.tokens]
    assert best.log_probability == pytest.approx(chosen.sum().item(), abs=1e-4)


def test_attention_is_recorded_for_every_layer_and_head_and_never_of_the_future(
    make: Callable[..., LanguageModel], ids: torch.Tensor
) -> None:
    model = make(positions="rotary")
    logits, record = model.with_attention(ids)
    close(logits, model(ids))
    assert [weights.shape for weights in record.decoder] == [(3, 4, 8, 8)] * 2
    for weights in record.decoder:
        close(weights.sum(-1), torch.ones(3, 4, 8))
        assert (weights.triu(1) == 0).all()


def test_learned_positions_refuse_what_is_too_long(make: Callable[..., LanguageModel]) -> None:
    model = make(positions="learned", max_length=5)
    model(torch.ones(1, 5, dtype=torch.long))
    with pytest.raises(InputError, match=r"6 tokens is longer than the 5 learned positions.*Split it"):
        model(torch.ones(1, 6, dtype=torch.long))
    state = model.prefill(torch.ones(1, 1, dtype=torch.long), capacity=6)
    model.step(state, torch.ones(1, 5, dtype=torch.long))
    with pytest.raises(InputError, match="6 tokens is longer than the 5"):
        model.step(state, torch.ones(1, 1, dtype=torch.long))
    assert model.max_target_length == 5
    assert make(positions="rotary").max_target_length is None


def test_tied_weights_are_one_tensor(make: Callable[..., LanguageModel]) -> None:
    tied, apart = make(tying="all"), make()
    assert tied.projection.weight is tied.embedding.tokens.weight
    assert apart.projection.weight is not apart.embedding.tokens.weight


@pytest.mark.parametrize(
    ("wrong", "message"),
    [([[1, 17]], r"text id 17 in sequence 0, position 1"), ([1, 3], r"text ids have shape \[2\].*unsqueeze")],
)
def test_wrong_ids_are_named(make: Callable[..., LanguageModel], wrong: Any, message: str) -> None:
    with pytest.raises(InputError, match=message):
        make()(torch.tensor(wrong))
