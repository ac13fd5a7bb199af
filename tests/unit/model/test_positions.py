"""Position encodings against their published formulas."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch

from transduce.errors import InputError
from transduce.model import Transformer, TransformerConfig, sinusoidal_positions
from transduce.model.positions import AlibiBias, alibi_slopes, relative_bucket, rotary_angles, rotate


def test_sinusoidal_positions_are_the_papers_interleaved_formula() -> None:
    table = sinusoidal_positions(50, 8)
    assert table.shape == (50, 8)
    for position in (0, 1, 7, 49):
        for i in range(4):
            angle = position / 10000 ** (2 * i / 8)
            assert table[position, 2 * i].item() == pytest.approx(math.sin(angle), abs=1e-6)
            assert table[position, 2 * i + 1].item() == pytest.approx(math.cos(angle), abs=1e-6)


def test_a_shift_of_sinusoidal_positions_is_a_linear_map() -> None:
    """§3.5: PE(pos+k) is a linear function of PE(pos), the same for all pos."""
    table = sinusoidal_positions(40, 6).double()
    mapping = torch.linalg.lstsq(table[:30], table[7:37]).solution
    torch.testing.assert_close(table[:30] @ mapping, table[7:37], atol=1e-5, rtol=0)


def test_rotary_products_depend_on_distance_only() -> None:
    query, key = torch.randn(1, 1, 1, 8), torch.randn(1, 1, 1, 8)

    def product(query_position: int, key_position: int) -> float:
        turned_query = rotate(query, rotary_angles(query_position, 1, 8, like=query))
        turned_key = rotate(key, rotary_angles(key_position, 1, 8, like=key))
        return float((turned_query * turned_key).sum())

    assert product(5, 3) == pytest.approx(product(102, 100), abs=1e-4)
    assert product(5, 3) != pytest.approx(product(5, 4), abs=1e-3)
    assert product(0, 0) == pytest.approx(float((query * key).sum()), abs=1e-5)


def test_rotary_turns_pairs_by_the_formula() -> None:
    turned = rotate(torch.tensor([[[[1.0, 0.0, 0.0, 1.0]]]]), rotary_angles(3, 1, 4, like=torch.zeros(1)))
    slow = 3 / 10000**0.5
    expected = torch.tensor([math.cos(3), math.sin(3), -math.sin(slow), math.cos(slow)])
    torch.testing.assert_close(turned.flatten(), expected)


def test_alibi_slopes_are_those_of_the_publication() -> None:
    assert alibi_slopes(8) == [2**-i for i in range(1, 9)]
    assert alibi_slopes(4) == [2**-2, 2**-4, 2**-6, 2**-8]
    assert alibi_slopes(6) == pytest.approx([2**-2, 2**-4, 2**-6, 2**-8, 2**-1, 2**-3])


def test_alibi_bias_falls_with_distance_and_tells_ahead_from_back() -> None:
    bias = AlibiBias(TransformerConfig.tiny(10, heads=2, d_model=4))(torch.arange(3), torch.arange(3))
    steep = torch.tensor([[0.0, -0.5, -1.0], [-1.0, 0.0, -0.5], [-2.0, -1.0, 0.0]])
    torch.testing.assert_close(bias, torch.stack((steep / 16, steep / 256)))


def test_relative_buckets_are_exact_near_and_logarithmic_far() -> None:
    """32 buckets to distance 128, as T5: values worked out from the formula of its publication."""
    past = torch.tensor([0, -1, -15, -16, -32, -64, -127, -128, -5000])
    assert relative_bucket(past, 32, 128, bidirectional=False).tolist() == [0, 1, 15, 16, 21, 26, 31, 31, 31]
    assert relative_bucket(torch.tensor([3]), 32, 128, bidirectional=False).tolist() == [0]
    both = torch.tensor([0, -7, 7, -8, 8, 200, -200])
    assert relative_bucket(both, 32, 128, bidirectional=True).tolist() == [0, 7, 23, 8, 24, 31, 15]


@pytest.mark.parametrize("positions", ["sinusoidal", "rotary", "relative", "alibi", "none"])
def test_any_length_at_inference(make_model: Callable[..., Transformer], positions: str) -> None:
    model = make_model(positions=positions, max_length=8)
    ids = torch.randint(3, 17, (1, 700))
    assert model(ids, ids).isfinite().all()


def test_learned_positions_refuse_what_lies_past_their_table(make_model: Callable[..., Transformer]) -> None:
    model = make_model(positions="learned", max_length=8)
    ids = torch.randint(3, 17, (1, 9))
    assert model(ids[:, :8], ids[:, :8]).isfinite().all()
    with pytest.raises(InputError, match=r"9 tokens is longer than the 8 learned positions.*max_length"):
        model(ids, ids[:, :8])
    with pytest.raises(InputError, match=r"9 tokens"):
        model(ids[:, :8], ids)


@pytest.mark.parametrize("positions", ["sinusoidal", "learned", "rotary", "relative", "alibi"])
def test_order_matters_with_positions(make_model: Callable[..., Transformer], positions: str) -> None:
    model = make_model(positions=positions)
    source, target = torch.tensor([[3, 4, 5, 6]]), torch.tensor([[1, 7]])
    assert not torch.allclose(model(source, target), model(source.flip(1), target), atol=1e-4)


def test_order_does_not_matter_without_positions(make_model: Callable[..., Transformer]) -> None:
    model = make_model(positions="none")
    source, target = torch.tensor([[3, 4, 5, 6]]), torch.tensor([[1, 7]])
    torch.testing.assert_close(model(source, target), model(source.flip(1), target), atol=1e-5, rtol=1e-5)


def test_tables_made_while_decoding_can_be_trained_through(make_model: Callable[..., Transformer]) -> None:
    model = make_model(positions="rotary", d_k=6)  # a width of its own, so that no table exists yet
    ids = torch.randint(3, 17, (1, 5))
    with torch.inference_mode():
        model(ids, ids)
    model(ids, ids).sum().backward()
    assert model.encoder.layers[0].attention.qkv.weight.grad.isfinite().all()
