"""What must hold of the whole network, whatever its settings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from transduce.errors import InputError
from transduce.model import Transformer, TransformerConfig
from transduce.model.dropout import Dropout
from transduce.paper import count_parameters

KINDS: list[dict[str, Any]] = [
    {},
    {"norm_position": "pre"},
    {"positions": "learned", "norm": "rms"},
    {"positions": "rotary", "activation": "swiglu", "norm_position": "pre"},
    {"positions": "relative", "activation": "geglu", "feedforward_bias": False, "scale_embeddings": False},
    {"positions": "alibi", "activation": "gelu", "attention_bias": True},
    {"positions": "none", "activation": "silu", "tying": "all"},
    {"key_value_heads": 2, "d_k": 6, "d_v": 10, "activation": "reglu"},
    {"encoder_layers": 3, "decoder_layers": 1, "target_vocab_size": 11, "tying": "target"},
    {"embedding_norm": True, "logits_bias": True, "activation": "gelu_tanh", "tying": "embeddings"},
    {"decoder_heads": 2, "decoder_d_ff": 20, "positions": "relative", "activation": "geglu_tanh"},
]

every_kind = pytest.mark.parametrize("kind", KINDS, ids=lambda kind: " ".join(map(str, kind.values())) or "paper")


@pytest.fixture
def built(kind: dict[str, Any], make_model: Callable[..., Transformer]) -> Transformer:
    return make_model(**kind)


@pytest.fixture
def targets(built: Transformer, target_ids: torch.Tensor) -> torch.Tensor:
    return target_ids.clamp(max=built.output_size - 1)


def close(ours: torch.Tensor, theirs: torch.Tensor) -> None:
    torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=0)


@every_kind
def test_logits_have_a_row_per_target_token(
    built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    logits = built(source_ids, targets)
    assert logits.shape == (3, 6, built.output_size)
    assert logits.dtype == torch.float
    assert logits.isfinite().all()


@every_kind
def test_no_position_sees_a_later_target_token(
    built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    before = built(source_ids, targets)
    changed = targets.clone()
    changed[:, 4] = (changed[:, 4] + 1) % built.output_size
    after = built(source_ids, changed)
    assert torch.equal(before[:, :4], after[:, :4])
    assert not torch.allclose(before[:, 4:], after[:, 4:], atol=1e-4)


@every_kind
def test_padding_changes_nothing(built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor) -> None:
    logits = built(source_ids, targets)
    longer_source = torch.nn.functional.pad(source_ids, (0, 4), value=built.pad_id)
    longer_target = torch.nn.functional.pad(targets, (0, 3), value=built.pad_id)
    close(built(longer_source, longer_target)[:, :6], logits)


@every_kind
def test_a_sentence_does_not_depend_on_its_batch(
    built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    logits = built(source_ids, targets)
    for index, length in enumerate((7, 5, 1)):
        alone = built(source_ids[index : index + 1, :length], targets[index : index + 1])
        close(alone[0], logits[index])


@every_kind
def test_the_order_of_a_batch_does_not_matter(
    built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    order = torch.tensor([2, 0, 1])
    close(built(source_ids[order], targets[order]), built(source_ids, targets)[order])


@every_kind
def test_cached_steps_give_the_logits_of_the_whole(
    built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    whole = built(source_ids, targets)
    state = built.prefill(source_ids, capacity=6)
    steps = [built.step(state, targets[:, t : t + 1]) for t in range(6)]
    close(torch.cat(steps, dim=1), whole)


@every_kind
def test_a_prefix_can_be_read_at_once_and_beams_can_be_reordered(
    built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    """Three tokens at once, then two beams per sentence that part and swap, then the first sentence leaves."""
    state = built.prefill(source_ids, capacity=6)
    close(built.step(state, targets[:, :3]), built(source_ids, targets[:, :3]))
    built.reorder(state, torch.tensor([[0, 0], [1, 1], [2, 2]]))
    fourth = torch.tensor([4, 5, 6, 7, 8, 9])
    built.step(state, fourth.unsqueeze(1))
    built.reorder(state, torch.tensor([[3, 2], [4, 4]]))
    last = built.step(state, torch.tensor([[3], [4], [5], [6]]))

    sources = source_ids[[1, 1, 2, 2]]
    written = torch.cat((targets[[1, 1, 2, 2], :3], fourth[[3, 2, 4, 4], None], torch.tensor([[3], [4], [5], [6]])), 1)
    close(last[:, 0], built(sources, written)[:, -1])


@every_kind
def test_gradients_reach_every_parameter(
    kind: dict[str, Any], built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    logits = built(source_ids, targets)
    (logits * torch.randn_like(logits)).sum().backward()
    for name, parameter in built.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().sum() > 0, name


@every_kind
def test_attention_weights_of_every_layer_and_head_sum_to_one(
    built: Transformer, source_ids: torch.Tensor, targets: torch.Tensor
) -> None:
    logits, record = built.with_attention(source_ids, targets)
    close(logits, built(source_ids, targets))
    config = built.config
    shapes = {"encoder": (7, 7), "decoder": (6, 6), "cross": (6, 7)}
    for part, (queries, keys) in shapes.items():
        layers = getattr(record, part)
        assert len(layers) == (config.encoder_layers if part == "encoder" else config.decoder_layers)
        heads = config.heads if part == "encoder" else config.decoder_heads or config.heads
        for weights in layers:
            assert weights.shape == (3, heads, queries, keys)
            close(weights.sum(-1), torch.ones(3, heads, queries))
    assert (record.cross[0][2, :, :, 1:] == 0).all(), "padding gets no attention"
    assert (record.decoder[0].triu(1) == 0).all(), "the future gets no attention"


def test_nothing_is_left_on_the_modules_by_recording(
    model: Transformer, source_ids: torch.Tensor, target_ids: torch.Tensor
) -> None:
    before = {name: set(vars(module)) for name, module in model.named_modules()}
    model.with_attention(source_ids, target_ids)
    assert {name: set(vars(module)) for name, module in model.named_modules()} == before


def test_a_source_wholly_padded_gives_no_nan(model: Transformer, source_ids: torch.Tensor) -> None:
    source_ids[1] = model.pad_id
    logits = model(source_ids, torch.tensor([[1, 5]] * 3))
    assert logits.isfinite().all()
    logits.sum().backward()
    assert all(p.grad.isfinite().all() for p in model.parameters() if p.grad is not None)


@pytest.mark.parametrize(
    ("preset", "parameters", "biases"), [("base", 63_045_632, 36_864), ("big", 214_171_648, 73_728)]
)
def test_parameters_are_exactly_those_of_the_paper(preset: str, parameters: int, biases: int) -> None:
    make = getattr(TransformerConfig, preset)
    assert count_parameters(make(vocab_size=37_000)) == parameters
    assert count_parameters(make(vocab_size=37_000, attention_bias=True)) == parameters + biases


def test_the_three_tied_matrices_are_one_tensor() -> None:
    model = Transformer(TransformerConfig.tiny(100))
    source, target = model.source_embedding.tokens.weight, model.target_embedding.tokens.weight
    assert source is target is model.projection.weight
    with torch.no_grad():
        source[5] += 1
    assert torch.equal(model.projection.weight[5], source[5])


def test_tying_survives_saving_copying_and_moving(source_ids: torch.Tensor, target_ids: torch.Tensor) -> None:
    model = Transformer(TransformerConfig.tiny(17)).eval()
    copy = Transformer(TransformerConfig.tiny(17)).eval()
    copy.load_state_dict(model.state_dict())
    copy = copy.double().float()
    assert copy.source_embedding.tokens.weight is copy.projection.weight
    assert torch.equal(copy(source_ids, target_ids), model(source_ids, target_ids))


def test_embeddings_are_scaled_by_the_root_of_d_model() -> None:
    model = Transformer(TransformerConfig.tiny(100, positions="none", dropout=0.0))
    ids = torch.tensor([[7, 8]])
    expected = model.source_embedding.tokens.weight[[7, 8]] * 128**0.5
    torch.testing.assert_close(model.source_embedding(ids)[0], expected)


def test_post_norm_has_no_final_norm_and_pre_norm_has_one_a_side() -> None:
    post, pre = (TransformerConfig.tiny(100, norm_position=position) for position in ("post", "pre"))
    assert count_parameters(pre) - count_parameters(post) == 2 * 2 * 128


def test_dropout_is_where_the_paper_has_it(source_ids: torch.Tensor, target_ids: torch.Tensor) -> None:
    """On the sum of embedding and position, and on each sub-layer's output: 1 + 2 per layer, 1 + 3 per layer."""
    model = Transformer(TransformerConfig.tiny(17, encoder_layers=2, decoder_layers=2, dropout=0.5))
    calls = []
    for module in model.modules():
        if isinstance(module, Dropout) and module.probability > 0:
            module.register_forward_hook(lambda *_: calls.append(1))
    model(source_ids, target_ids)
    assert len(calls) == (1 + 2 * 2) + (1 + 2 * 3)


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ([[3, 17]], [[1]], r"source id 17 in sequence 0, position 1, lies outside the vocabulary of 17 ids.*0 to 16"),
        ([[3, -1]], [[1]], r"source id -1"),
        ([[3, 4]], [[1, 99]], r"target id 99 in sequence 0, position 1"),
        ([[]], [[1]], r"source ids of shape \[1, 0\] are empty"),
        ([[3]], [[]], r"target ids of shape \[1, 0\] are empty"),
        ([3, 4], [[1]], r"source ids have shape \[2\].*unsqueeze"),
        ([[3.5]], [[1]], r"source ids are of type torch.float32.*integers"),
        ([[3], [4]], [[1]], r"2 source sequences but 1 target sequences"),
    ],
)
def test_wrong_input_is_named_with_its_remedy(model: Transformer, source: Any, target: Any, message: str) -> None:
    def ids(values: Any) -> torch.Tensor:
        return torch.tensor(values) if torch.tensor(values).numel() else torch.zeros(1, 0, dtype=torch.long)

    with pytest.raises(InputError, match=message):
        model(ids(source), ids(target))


def test_the_decoder_can_have_other_heads_and_another_width(make_model: Callable[..., Transformer]) -> None:
    model = make_model(heads=4, d_ff=32, decoder_heads=2, decoder_d_ff=20)
    _, record = model.with_attention(torch.full((1, 3), 4), torch.full((1, 5), 4))
    assert {weights.size(1) for weights in record.encoder} == {4}
    assert {weights.size(1) for weights in (*record.decoder, *record.cross)} == {2}
    assert model.encoder.layers[0].feedforward.inner.weight.shape == (32, 16)
    assert model.decoder.layers[0].feedforward.inner.weight.shape == (20, 16)


def test_a_bias_of_logits_starts_with_nothing_to_say() -> None:
    config = TransformerConfig.tiny(20, logits_bias=True)
    assert not Transformer(config).projection.bias.any()


def test_two_of_three_matrices_can_be_one() -> None:
    model = Transformer(TransformerConfig.tiny(20, tying="embeddings"))
    assert model.source_embedding.tokens.weight is model.target_embedding.tokens.weight
    assert model.projection.weight is not model.target_embedding.tokens.weight


def test_embeddings_are_normalised_with_their_positions_if_asked_to() -> None:
    model = Transformer(TransformerConfig.tiny(20, embedding_norm=True)).eval()
    x = model.source_embedding(torch.tensor([[3, 4, 5]]))
    close(x.mean(-1), torch.zeros(1, 3))
    close(x.var(-1, unbiased=False), torch.ones(1, 3))
