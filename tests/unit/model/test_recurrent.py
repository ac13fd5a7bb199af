"""The recurrent baseline: its equations by hand, and what must hold of it as of the Transformer."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from transduce.decoding import DecodingOptions, decode
from transduce.errors import ConfigError, InputError
from transduce.model import RecurrentConfig, RecurrentTranslator
from transduce.model.dropout import Dropout, randomness
from transduce.model.recurrent import additive_weights

VOCABULARY = 17
SIZES = {"vocab_size": VOCABULARY, "d_model": 8, "hidden": 12, "attention_width": 10}

KINDS: list[dict[str, Any]] = [
    {},
    {"cell": "lstm"},
    {"encoder_layers": 2, "decoder_layers": 3, "tying": "none"},
    {"cell": "lstm", "encoder_layers": 3, "decoder_layers": 2, "target_vocab_size": 11, "tying": "target"},
]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind.values())) or "default")


def make(**overrides: Any) -> RecurrentTranslator:
    """A small random model in evaluation mode, with weights large enough for differences to show."""
    model = RecurrentTranslator(RecurrentConfig(**{**SIZES, **overrides})).eval()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter) * 0.2)
    return model


@pytest.fixture
def built(kind: dict[str, Any]) -> RecurrentTranslator:
    return make(**kind)


@pytest.fixture
def targets(built: RecurrentTranslator, target_ids: Tensor) -> Tensor:
    return target_ids.clamp(max=built.output_size - 1)


def close(ours: Tensor, theirs: Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


def test_additive_attention_is_its_equation() -> None:
    """Score: v · tanh(W s + U h), by hand: tanh of 0 is 0, and of ±½ ln 3 it is ±½."""
    half = math.log(3) / 2
    query = torch.tensor([[[half, 0.0]]])
    keys = torch.tensor([[[0.0, 0.0], [-half, half], [-2 * half, 0.0]]])
    v = torch.tensor([2.0, 4.0])
    e = [math.exp(score) for score in (2 * 0.5, 4 * 0.5, 2 * -0.5)]
    close(additive_weights(query, keys, v), torch.tensor([[[score / sum(e) for score in e]]]))


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_a_step_is_that_of_bahdanau(cell: str, source_ids: Tensor) -> None:
    """Plain loops and PyTorch's own cell, which reads [y; c], against the form that is fast."""
    model = make(cell=cell)
    state = model.prefill(source_ids[:1], capacity=4)
    h_SM, (s_H, *rest) = state.memory[0], (part[0] for part in state.layers[0])
    W, U = model.recurrence.weight[:10], model.keys.weight
    bias = model.recurrence.bias[:10] + model.keys.bias
    scores = torch.stack([model.score @ torch.tanh(W @ s_H + U @ h_M + bias) for h_M in h_SM])
    context = sum(share * h_M for share, h_M in zip(scores.softmax(0), h_SM, strict=True))

    reference = (nn.GRUCell if cell == "gru" else nn.LSTMCell)(8 + 24, 12)
    with torch.no_grad():
        reference.weight_ih.copy_(torch.cat((model.inputs.weight, model.values.weight), 1))
        reference.bias_ih.copy_(model.inputs.bias)
        reference.weight_hh.copy_(model.recurrence.weight[10:])
        reference.bias_hh.copy_(model.recurrence.bias[10:])
    y = model.target_tokens.weight[1] * math.sqrt(8)
    read = torch.cat((y, context)).unsqueeze(0)
    after = reference(read, s_H.unsqueeze(0)) if cell == "gru" else reference(read, (s_H[None], rest[0][None]))[0]

    logits = model.step(state, torch.tensor([[1]]))
    close(state.layers[0][0], after)
    both = model.readout(torch.cat((y, after[0], context)))
    close(logits[0, 0], model.projection.weight @ torch.maximum(both[:8], both[8:]))


def test_the_first_state_has_read_the_whole_sentence() -> None:
    model = make()
    one, other = (model.prefill(torch.tensor([[5, 6, 7, last]]), 1).layers[0][0] for last in (8, 9))
    assert not torch.allclose(one, other, atol=1e-4)


@every_kind
def test_logits_have_a_row_per_target_token(built: RecurrentTranslator, source_ids: Tensor, targets: Tensor) -> None:
    logits = built(source_ids, targets)
    assert logits.shape == (3, 6, built.output_size)
    assert logits.isfinite().all()
    hidden = built.hidden(source_ids, targets)
    assert hidden.shape == (3, 6, 8)
    close(built.project(hidden), logits)


@every_kind
def test_no_position_sees_a_later_target_token(built: RecurrentTranslator, source_ids: Tensor, targets: Tensor) -> None:
    before = built(source_ids, targets)
    changed = targets.clone()
    changed[:, 4] = (changed[:, 4] + 1) % built.output_size
    after = built(source_ids, changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:], atol=1e-4)


@every_kind
def test_neither_padding_nor_the_rest_of_a_batch_changes_a_sentence(
    built: RecurrentTranslator, source_ids: Tensor, targets: Tensor
) -> None:
    logits = built(source_ids, targets)
    close(built(F.pad(source_ids, (0, 4)), F.pad(targets, (0, 3)))[:, :6], logits)
    order = torch.tensor([2, 0, 1])
    close(built(source_ids[order], targets[order]), logits[order])
    for index, length in enumerate((7, 5, 1)):
        close(built(source_ids[index : index + 1, :length], targets[index : index + 1])[0], logits[index])


@every_kind
def test_attention_is_a_distribution_over_real_source_tokens(
    built: RecurrentTranslator, source_ids: Tensor, targets: Tensor
) -> None:
    logits, record = built.with_attention(source_ids, targets)
    close(logits, built(source_ids, targets))
    (weights,) = record.cross
    assert not record.encoder
    assert not record.decoder
    assert weights.shape == (3, 1, 6, 7)
    close(weights.sum(-1), torch.ones(3, 1, 6))
    assert (weights >= 0).all()
    assert weights.masked_select((source_ids == 0)[:, None, None]).count_nonzero() == 0


@every_kind
def test_steps_give_the_logits_of_the_whole(built: RecurrentTranslator, source_ids: Tensor, targets: Tensor) -> None:
    state = built.prefill(source_ids, capacity=6)
    steps = [built.step(state, targets[:, t : t + 1]) for t in range(6)]
    close(torch.cat(steps, 1), built(source_ids, targets))


@every_kind
def test_a_prefix_can_be_read_at_once_and_beams_can_be_reordered(
    built: RecurrentTranslator, source_ids: Tensor, targets: Tensor
) -> None:
    """Three tokens at once, then two beams per sentence that part and swap, then the first sentence leaves."""
    state = built.prefill(source_ids, capacity=6)
    close(built.step(state, targets[:, :3]), built(source_ids, targets[:, :3]))
    built.reorder(state, torch.tensor([[0, 0], [1, 1], [2, 2]]))
    fourth = torch.tensor([4, 5, 6, 7, 8, 9])
    built.step(state, fourth.unsqueeze(1))
    built.reorder(state, torch.tensor([[3, 2], [4, 4]]))
    last = built.step(state, torch.tensor([[3], [4], [5], [6]]))

    written = torch.cat((targets[[1, 1, 2, 2], :3], fourth[[3, 2, 4, 4], None], torch.tensor([[3], [4], [5], [6]])), 1)
    close(last[:, 0], built(source_ids[[1, 1, 2, 2]], written)[:, -1])


@every_kind
def test_gradients_reach_every_parameter(built: RecurrentTranslator, source_ids: Tensor, targets: Tensor) -> None:
    built.train()
    F.cross_entropy(built(source_ids, targets).flatten(0, 1), targets.flatten()).backward()
    silent = [name for name, p in built.named_parameters() if p.grad is None or not p.grad.count_nonzero()]
    assert silent == []


def test_dropout_draws_from_the_given_randomness_alone(source_ids: Tensor, target_ids: Tensor) -> None:
    model = make(dropout=0.3, encoder_layers=2, decoder_layers=2).train()
    before = torch.get_rng_state()
    with randomness(7):
        one = model(source_ids, target_ids)
    with randomness(7):
        same = model(source_ids, target_ids)
    with randomness(8):
        other = model(source_ids, target_ids)
    assert torch.equal(one, same)
    assert not torch.equal(one, other)
    assert torch.equal(torch.get_rng_state(), before)
    assert {part.probability for part in model.modules() if isinstance(part, Dropout)} == {0.3}


def test_tying_shares_tables() -> None:
    tied, target, none = (make(tying=tying) for tying in ("all", "target", "none"))
    assert tied.source_tokens.weight is tied.target_tokens.weight is tied.projection.weight
    assert target.source_tokens.weight is not target.target_tokens.weight
    assert target.target_tokens.weight is target.projection.weight
    assert none.target_tokens.weight is not none.projection.weight


@every_kind
@pytest.mark.parametrize(
    "options",
    [
        DecodingOptions(beam=1),
        DecodingOptions(beam=4, n_best=2),
        DecodingOptions(sampling=True, seed=3),
        DecodingOptions(beam=3, prefix=[5, 6]),
    ],
    ids=["greedy", "beam", "sampling", "prefix"],
)
def test_search_scores_are_those_of_teacher_forcing(
    built: RecurrentTranslator, source_ids: Tensor, options: DecodingOptions
) -> None:
    found = decode(built, source_ids, options)
    assert len(found) == 3
    for source, hypotheses in zip(source_ids, found, strict=True):
        for hypothesis in hypotheses:
            read = torch.tensor([[1, *hypothesis.tokens[:-1]]])
            log_probs = built(source.unsqueeze(0), read)[0].log_softmax(-1)
            written = torch.tensor(hypothesis.tokens).unsqueeze(1)
            close(torch.tensor(hypothesis.token_scores), log_probs.gather(1, written).squeeze(1).detach())
            if options.prefix:
                assert hypothesis.tokens[:2] == [5, 6]


@pytest.mark.parametrize("cell", ["gru", "lstm"])
def test_it_learns_to_write_digits_backwards(cell: str) -> None:
    generator = random.Random(1)
    model = RecurrentTranslator(
        RecurrentConfig(vocab_size=13, d_model=32, hidden=48, attention_width=32, cell=cell, dropout=0.0)  # type: ignore[arg-type]
    )
    optimizer = torch.optim.Adam(model.parameters(), 0.01)

    def batch(size: int) -> tuple[Tensor, Tensor]:
        digits = torch.tensor([[generator.randrange(3, 13) for _ in range(4)] for _ in range(size)])
        end = torch.full((size, 1), 2)
        return torch.cat((digits, end), 1), torch.cat((digits.flip(1), end), 1)

    for _ in range(150):
        source, labels = batch(32)
        logits = model(source, F.pad(labels[:, :-1], (1, 0), value=1))
        optimizer.zero_grad()
        F.cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
        optimizer.step()
    source, labels = batch(100)
    found = [best.tokens for best, *_ in decode(model, source, DecodingOptions(beam=1))]
    assert sum(tokens == wanted for tokens, wanted in zip(found, labels.tolist(), strict=True)) >= 90


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"hidden": 0}, "hidden=0 cannot work"),
        ({"decoder_layers": 1.5}, "decoder_layers=1.5 cannot work"),
        ({"target_vocab_size": 0}, "target_vocab_size=0 cannot work"),
        ({"cell": "gr"}, "Did you mean 'gru'"),
        ({"tying": "targets"}, "Did you mean 'target'"),
        ({"dropout": 1.0}, "not a probability below 1"),
        ({"target_vocab_size": 11}, "tying='target'"),
        ({"bos_id": 17}, "ids from 0 to 16"),
        ({"eos_id": 0}, "one of its own"),
    ],
)
def test_a_setting_that_cannot_work_is_named(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ConfigError, match=words.replace("(", r"\(")):
        RecurrentConfig(**{**SIZES, **settings})


def test_a_setting_that_does_not_exist_is_named() -> None:
    assert RecurrentConfig.base(17, hidden=12) == RecurrentConfig(vocab_size=17, hidden=12)
    with pytest.raises(ConfigError, match=r"'hiden' is not a setting .* Did you mean 'hidden'"):
        RecurrentConfig.base(17, hiden=12)


def test_wrong_ids_are_named(source_ids: Tensor, target_ids: Tensor) -> None:
    model = make()
    with pytest.raises(InputError, match="source id 17 in sequence 0, position 1"):
        model(torch.tensor([[3, 17]]), torch.tensor([[1]]))
    with pytest.raises(InputError, match="target ids have shape"):
        model(source_ids, target_ids[0])
    with pytest.raises(InputError, match="3 source sequences but 2 target"):
        model(source_ids, target_ids[:2])


def test_it_can_be_described_without_memory() -> None:
    """What a bundle does to check shapes before anything is allocated."""
    with torch.device("meta"):
        described = RecurrentTranslator(RecurrentConfig(**SIZES))
    shapes = {name: value.shape for name, value in described.state_dict().items()}
    assert shapes == {name: value.shape for name, value in make().state_dict().items()}
