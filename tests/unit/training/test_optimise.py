"""Adam against PyTorch's own, and its memory."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from transduce.training.optimise import Adam, make_optimizer
from transduce.training.recipe import TrainingRecipe


def module() -> nn.Module:
    torch.manual_seed(1)
    return nn.Sequential(nn.Linear(5, 7), nn.Linear(7, 3))


def give_gradients(of: nn.Module, step: int) -> None:
    generator = torch.Generator().manual_seed(step)
    for number, parameter in enumerate(of.parameters()):
        # The last parameter has none at first, as a part of a model that takes no part in a loss.
        some = number < 3 or step > 2
        parameter.grad = torch.randn(parameter.shape, generator=generator) if some else None


@pytest.mark.parametrize("decay", [0.0, 0.1])
def test_same_as_pytorch(decay: float) -> None:
    ours, theirs = module(), module()
    mine = Adam(ours.parameters(), (0.9, 0.98), 1e-9, decay)
    reference = torch.optim.AdamW(theirs.parameters(), betas=(0.9, 0.98), eps=1e-9, weight_decay=decay, foreach=False)
    for step in range(1, 8):
        for model in (ours, theirs):
            give_gradients(model, step)
        mine.step(0.01 / step)
        reference.param_groups[0]["lr"] = 0.01 / step
        reference.step()
    for one, other in zip(ours.parameters(), theirs.parameters(), strict=True):
        torch.testing.assert_close(one, other)


def test_its_memory_goes_on_where_it_was() -> None:
    straight, interrupted = module(), module()
    whole = Adam(straight.parameters(), (0.9, 0.98), 1e-9)
    first = Adam(interrupted.parameters(), (0.9, 0.98), 1e-9)
    second = Adam(interrupted.parameters(), (0.9, 0.98), 1e-9)
    for step in range(1, 7):
        if step == 4:
            second.load(first.tensors())
        for model, optimizer in ((straight, whole), (interrupted, first if step < 4 else second)):
            give_gradients(model, step)
            optimizer.step(0.01)
    for one, other in zip(straight.parameters(), interrupted.parameters(), strict=True):
        assert torch.equal(one, other)
    assert all(parameter.grad is not None for parameter in straight.parameters())
    whole.forget_gradients()
    assert all(parameter.grad is None for parameter in straight.parameters())


def test_plain_adam_has_no_decay() -> None:
    assert make_optimizer(module(), TrainingRecipe(optimizer="adam", weight_decay=0.1)).decay == 0
    assert make_optimizer(module(), TrainingRecipe(optimizer="adamw", weight_decay=0.1)).decay == 0.1
