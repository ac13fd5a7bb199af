"""The key-value cache by itself."""

from __future__ import annotations

import pytest
import torch

from transduce.model.cache import KeyValueCache


def entries(rows: int, positions: int) -> tuple[torch.Tensor, torch.Tensor]:
    return torch.randn(rows, 2, positions, 4), torch.randn(rows, 2, positions, 3)


def test_what_is_appended_comes_back() -> None:
    cache = KeyValueCache(capacity=5)
    first, second = entries(3, 2), entries(3, 1)
    cache.append(*first)
    keys, values = cache.append(*second)
    assert torch.equal(keys, torch.cat((first[0], second[0]), dim=2))
    assert torch.equal(values, torch.cat((first[1], second[1]), dim=2))


def test_the_buffer_is_allocated_once() -> None:
    cache = KeyValueCache(capacity=5)
    address = cache.append(*entries(3, 1)).keys.data_ptr()
    for rows in ([2, 0, 1], [0, 1, 2], [1, 2]):
        cache.reorder(torch.tensor(rows))
        assert cache.append(*entries(len(rows), 1)).keys.data_ptr() == address


@pytest.mark.parametrize("rows", [[0, 1, 2], [2, 2, 0], [1, 0], [1], [0, 0, 1, 1, 2, 2]])
def test_reordering_makes_row_i_what_row_rows_i_was(rows: list[int]) -> None:
    cache = KeyValueCache(capacity=5)
    keys, values = (part.clone() for part in cache.append(*entries(3, 2)))
    cache.reorder(torch.tensor(rows))
    new = entries(len(rows), 1)
    reordered = cache.append(*new)
    assert torch.equal(reordered.keys, torch.cat((keys[rows], new[0]), dim=2))
    assert torch.equal(reordered.values, torch.cat((values[rows], new[1]), dim=2))


def test_an_empty_cache_can_be_reordered() -> None:
    cache = KeyValueCache(capacity=5)
    cache.reorder(torch.tensor([1, 0]))
    assert cache.append(*entries(2, 1)).keys.shape == (2, 2, 1, 4)


def test_a_full_cache_grows_and_keeps_what_it_holds() -> None:
    cache = KeyValueCache(capacity=100)
    parts = [entries(2, count) for count in (3, 1, 40, 1, 55)]
    for part in parts:
        keys, values = cache.append(*part)
        cache.reorder(torch.tensor([0, 1]))
    assert torch.equal(keys, torch.cat([part[0] for part in parts], dim=2))
    assert torch.equal(values, torch.cat([part[1] for part in parts], dim=2))
