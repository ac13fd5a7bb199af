"""The largest of many numbers."""

from __future__ import annotations

import pytest
import torch

from transduce.decoding.choice import BLOCK, largest


@pytest.mark.parametrize("size", [5, BLOCK, 20 * BLOCK, 20 * BLOCK + 1, 25 * BLOCK - 1, 8000])
@pytest.mark.parametrize("count", [1, 2, 5, 8])
def test_as_topk(size: int, count: int) -> None:
    generator = torch.Generator().manual_seed(size + count)
    values = torch.randn(3, 4, size, generator=generator)
    values[0, 0, -1] = 100.0  # in what is left over after the last whole block
    values[1, 1, : size - 1] = float("-inf")
    expected = values.topk(min(count, size))
    found, places = largest(values, min(count, size))
    assert torch.equal(found, expected.values)
    assert torch.equal(values.gather(-1, places), found)
    assert torch.equal(places[0], expected.indices[0])


def test_equal_numbers_are_found_each_once() -> None:
    values = torch.zeros(2, 40 * BLOCK)
    found, places = largest(values, 8)
    assert torch.equal(found, torch.zeros(2, 8))
    assert all(len(set(row)) == 8 for row in places.tolist())
