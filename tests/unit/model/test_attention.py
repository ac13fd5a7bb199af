"""Equation 1, written out by hand, and what must hold of any attention."""

from __future__ import annotations

import math
import sys

import pytest
import torch

from transduce.errors import InputError
from transduce.model import MultiHeadAttention, TransformerConfig, attention, attention_weights
from transduce.model.attention import FUSED_FROM_KEYS, Pattern, _fused_attention
from transduce.model.masks import causal_mask, padding_mask


def by_hand(query: list[list[float]], key: list[list[float]], value: list[list[float]]) -> list[list[float]]:
    """Softmax(QKᵀ/√d_k)V in plain Python."""
    result = []
    for q in query:
        scores = [sum(a * b for a, b in zip(q, k, strict=True)) / math.sqrt(len(q)) for k in key]
        total = sum(math.exp(score) for score in scores)
        weights = [math.exp(score) / total for score in scores]
        result.append([sum(w * v[i] for w, v in zip(weights, value, strict=True)) for i in range(len(value[0]))])
    return result


def test_attention_is_equation_1() -> None:
    query, key, value = torch.randn(3, 4), torch.randn(5, 4), torch.randn(5, 2)
    expected = torch.tensor(by_hand(query.tolist(), key.tolist(), value.tolist()))
    torch.testing.assert_close(attention(query, key, value), expected)


def test_scaling_keeps_the_variance_of_scores_at_one() -> None:
    query, key = torch.randn(200, 256), torch.randn(200, 256)
    scores = attention_weights(query, key).log()
    assert (scores - scores.mean(-1, keepdim=True)).var().item() == pytest.approx(1, abs=0.05)


def test_masked_keys_get_no_weight_and_the_rest_sums_to_one() -> None:
    mask = torch.tensor([[True, False, True], [False, True, False]])
    weights = attention_weights(torch.randn(2, 4), torch.randn(3, 4), mask)
    assert (weights[~mask] == 0).all()
    torch.testing.assert_close(weights.sum(-1), torch.ones(2))


def test_a_mask_of_numbers_is_refused() -> None:
    with pytest.raises(InputError, match=r"mask is of type torch.float32.*True where a query may look"):
        attention(torch.randn(2, 4), torch.randn(3, 4), torch.randn(3, 4), torch.zeros(2, 3))


def test_bias_is_added_to_the_scores() -> None:
    query, key, bias = torch.randn(2, 4), torch.randn(3, 4), torch.randn(2, 3)
    expected = (query @ key.T / 2 + bias).softmax(-1)
    torch.testing.assert_close(attention_weights(query, key, bias=bias), expected)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64, torch.bfloat16])
def test_rows_wholly_masked_give_zeros_and_finite_gradients(dtype: torch.dtype) -> None:
    query, key, value = (torch.randn(2, 3, 4, dtype=dtype, requires_grad=True) for _ in range(3))
    mask = torch.ones(2, 3, 3, dtype=torch.bool)
    mask[0, 1] = False
    output = attention(query, key, value, mask)
    assert (output[0, 1] == 0).all()
    output.sum().backward()
    for tensor in (query, key, value):
        assert tensor.grad is not None
        assert tensor.grad.isfinite().all()


@pytest.mark.parametrize("keys", [6, FUSED_FROM_KEYS + 7])
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", ["none", "padding", "wholly masked", "causal"])
def test_the_fused_kernel_is_the_equation(keys: int, biased: bool, kind: str) -> None:
    query, key, value = (torch.randn(2, 4, keys, width, requires_grad=True) for width in (8, 8, 12))
    bias = torch.randn(4, keys, keys) if biased else None
    mask = None
    if kind == "causal":
        mask = causal_mask(keys, keys)
    elif kind != "none":
        mask = torch.ones(2, 1, 1, keys, dtype=torch.bool)
        mask[1, ..., (0 if kind == "wholly masked" else 3) :] = False
    fused = _fused_attention(query, key, value, Pattern(mask, bias, causal=kind == "causal"), dropout=0.0)
    plain = attention(query, key, value, mask, bias)
    torch.testing.assert_close(fused, plain, atol=1e-5, rtol=1e-5)
    probe = torch.randn_like(plain)
    for ours, theirs in zip(
        torch.autograd.grad(plain, (query, key, value), probe),
        torch.autograd.grad(fused, (query, key, value), probe),
        strict=True,
    ):
        torch.testing.assert_close(ours, theirs, atol=1e-5, rtol=1e-5)


def test_multi_head_attention_is_the_printed_equation() -> None:
    """Concat(head₁ … head_h) Wᴼ, one head at a time."""
    config = TransformerConfig.tiny(10, d_model=12, heads=3, d_k=5, d_v=2, attention_bias=True)
    layer = MultiHeadAttention(config)
    torch.nn.init.normal_(layer.qkv.bias)
    x = torch.randn(2, 4, 12)
    projected = x @ layer.qkv.weight.T + layer.qkv.bias
    query, key, value = projected[..., :15], projected[..., 15:30], projected[..., 30:]
    heads = [
        attention(query[..., 5 * h : 5 * h + 5], key[..., 5 * h : 5 * h + 5], value[..., 2 * h : 2 * h + 2])
        for h in range(3)
    ]
    expected = torch.cat(heads, dim=-1) @ layer.output.weight.T + layer.output.bias
    torch.testing.assert_close(layer(x, Pattern()), expected, atol=1e-6, rtol=1e-5)


def test_grouped_queries_equal_full_heads_with_repeated_keys_and_values() -> None:
    grouped = MultiHeadAttention(TransformerConfig.tiny(10, d_model=16, heads=4, key_value_heads=2))
    full = MultiHeadAttention(TransformerConfig.tiny(10, d_model=16, heads=4))
    query, key, value = torch.split(grouped.qkv.weight, grouped.widths)
    repeat = [matrix.view(2, 4, 16).repeat_interleave(2, dim=0).reshape(16, 16) for matrix in (key, value)]
    full.qkv.weight.data = torch.cat([query, *repeat])
    full.output.weight.data = grouped.output.weight.data
    x = torch.randn(2, 5, 16)
    torch.testing.assert_close(grouped(x, Pattern()), full(x, Pattern()))
    assert sum(p.numel() for p in grouped.parameters()) < sum(p.numel() for p in full.parameters())


def test_recorded_weights_multiplied_out_are_the_fused_output(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[MultiHeadAttention.__module__], "FUSED_FROM_KEYS", 0)
    layer = MultiHeadAttention(TransformerConfig.tiny(10, d_model=16, heads=4)).eval()
    x, mask = torch.randn(2, 5, 16), torch.ones(2, 1, 1, 5, dtype=torch.bool)
    mask[1, ..., 3:] = False
    fused = layer(x, Pattern(mask))
    record: list[torch.Tensor] = []
    plain = layer(x, Pattern(mask), record=record)
    (weights,) = record
    assert weights.shape == (2, 4, 5, 5)
    torch.testing.assert_close(weights.sum(-1), torch.ones(2, 4, 5))
    torch.testing.assert_close(plain, fused, atol=1e-6, rtol=1e-5)
    value = layer.keys_and_values(x).values
    multiplied_out = layer.output((weights @ value).transpose(1, 2).flatten(2))
    torch.testing.assert_close(multiplied_out, fused, atol=1e-6, rtol=1e-5)


def test_attention_dropout_is_off_in_evaluation_and_on_in_training() -> None:
    layer = MultiHeadAttention(TransformerConfig.tiny(10, d_model=16, heads=4, attention_dropout=0.5))
    x = torch.randn(1, 6, 16)
    layer.eval()
    torch.testing.assert_close(layer(x, Pattern()), layer(x, Pattern()))
    layer.train()
    assert not torch.allclose(layer(x, Pattern()), layer(x, Pattern()))


def test_padding_mask_is_left_out_where_nothing_is_padded() -> None:
    assert padding_mask(torch.tensor([[3, 4], [5, 6]]), pad_id=0) is None
    mask = padding_mask(torch.tensor([[3, 4], [5, 0]]), pad_id=0)
    assert mask is not None
    assert mask.tolist() == [[[[True, True]]], [[[True, False]]]]


def test_causal_mask_lets_new_queries_see_all_earlier_keys() -> None:
    assert causal_mask(2, 4).tolist() == [[True, True, True, False], [True, True, True, True]]
