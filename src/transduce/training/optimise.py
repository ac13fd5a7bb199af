"""The optimiser of a recipe, and its memory as plain tensors."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from transduce.training.recipe import TrainingRecipe

__all__ = ["load_optimizer", "make_optimizer", "optimizer_tensors"]


def make_optimizer(module: nn.Module, recipe: TrainingRecipe) -> torch.optim.Optimizer:
    """Adam (§5.3) or AdamW, in one fused pass over the weights; the rate is set before each step."""
    settings = {"betas": (recipe.beta1, recipe.beta2), "eps": recipe.epsilon, "fused": True}
    if recipe.optimizer == "adamw":
        return torch.optim.AdamW(module.parameters(), weight_decay=recipe.weight_decay, **settings)  # type: ignore[arg-type]
    return torch.optim.Adam(module.parameters(), **settings)  # type: ignore[arg-type]


def optimizer_tensors(optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    """What the optimiser remembers of each parameter, by number and name."""
    return {
        f"{index}.{name}": value
        for index, memory in optimizer.state_dict()["state"].items()
        for name, value in memory.items()
    }


def load_optimizer(optimizer: torch.optim.Optimizer, tensors: dict[str, Tensor]) -> None:
    """Give an optimiser back what `optimizer_tensors` took."""
    state = optimizer.state_dict()
    state["state"] = {}
    for key, value in tensors.items():
        index, name = key.split(".", 1)
        state["state"].setdefault(int(index), {})[name] = value
    optimizer.load_state_dict(state)
