"""Dropout from few random bits: the right share, the right scale, the right gradient."""

from __future__ import annotations

import math

import pytest
import torch

from transduce.model.dropout import Dropout, dropout, randomness

SIZE = 200_000


@pytest.mark.parametrize("probability", [0.001, 0.1, 0.3, 0.5, 0.9])
def test_it_drops_the_share_that_was_asked_for(probability: float) -> None:
    torch.manual_seed(0)
    dropped = (dropout(torch.ones(SIZE), probability) == 0).double().mean().item()
    deviation = math.sqrt(probability * (1 - probability) / SIZE)
    assert abs(dropped - probability) < 5 * deviation


@pytest.mark.parametrize("probability", [0.1, 0.3, 0.5])
def test_what_is_kept_is_scaled_so_that_the_mean_stays(probability: float) -> None:
    torch.manual_seed(0)
    x = torch.randn(3, 5, 7)
    y = dropout(x, probability)
    torch.testing.assert_close(y[y != 0], x[y != 0] / (1 - probability), rtol=1e-4, atol=0)


def test_each_of_the_elements_that_share_a_random_number_is_decided_by_itself() -> None:
    torch.manual_seed(0)
    lanes = (dropout(torch.ones(SIZE // 4, 4), 0.5) == 0).double()
    assert torch.allclose(torch.corrcoef(lanes.T), torch.eye(4, dtype=torch.float64), atol=5 / math.sqrt(SIZE / 4))


def test_the_gradient_flows_where_the_values_did() -> None:
    torch.manual_seed(0)
    x = torch.randn(101, requires_grad=True)
    y = dropout(x, 0.4)
    (gradient,) = torch.autograd.grad(y.sum(), x)
    torch.testing.assert_close(gradient * x.detach(), y.detach())


def test_none_and_all() -> None:
    x = torch.randn(9)
    assert torch.equal(dropout(x, 0.0), x)
    assert torch.equal(dropout(x, 1.0), torch.zeros(9))


def test_only_training_drops() -> None:
    module, x = Dropout(0.5), torch.randn(100)
    assert torch.equal(module.eval()(x), x)
    assert (module.train()(x) == 0).any()


def test_a_seed_gives_the_same_mask_and_the_global_generator_follows_manual_seed() -> None:
    x = torch.ones(1000)
    torch.manual_seed(3)
    first = dropout(x, 0.5)
    second = dropout(x, 0.5)
    torch.manual_seed(3)
    assert torch.equal(dropout(x, 0.5), first)
    assert not torch.equal(first, second)


def test_a_generator_of_ones_own_leaves_the_global_one_alone() -> None:
    x = torch.ones(1000)
    before = torch.get_rng_state()
    with randomness(7):
        first = dropout(x, 0.5)
    with randomness(7):
        again = dropout(x, 0.5)
    assert torch.equal(first, again)
    assert torch.equal(torch.get_rng_state(), before)
    dropout(x, 0.5)
    assert not torch.equal(torch.get_rng_state(), before)
