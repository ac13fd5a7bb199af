"""Adam (§5.3) and AdamW, their memory as plain tensors.

PyTorch's optimiser classes load its compiler when they are made: 1.4 seconds and 70 MB that training has no use for.
The arithmetic is its own: one pass over the weights.
"""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn

from transduce.training.recipe import TrainingRecipe

__all__ = ["Adam", "make_optimizer"]


class Adam:
    """With gradient g:  m ← β₁m + (1-β₁)g,  v ← β₂v + (1-β₂)g²,  w ← w - rate · m̂ / (√v̂ + ε).

    m̂ = m / (1-β₁ᵗ) and v̂ = v / (1-β₂ᵗ) after t steps. With `decay` (AdamW) w shrinks by rate · decay · w as well.
    """

    def __init__(
        self, parameters: Iterable[nn.Parameter], betas: tuple[float, float], epsilon: float, decay: float = 0.0
    ) -> None:
        self.parameters = list(parameters)
        self.betas, self.epsilon, self.decay = betas, epsilon, decay
        self.means: dict[int, Tensor] = {}
        """m, by number of the parameter; those that never had a gradient have none."""
        self.squares: dict[int, Tensor] = {}
        """v."""
        self.steps: dict[int, Tensor] = {}
        """t."""
        self._named = {"exp_avg": self.means, "exp_avg_sq": self.squares, "step": self.steps}  # PyTorch's names

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the parameters that have a gradient."""
        numbers = [number for number, parameter in enumerate(self.parameters) if parameter.grad is not None]
        for number in numbers:
            if number not in self.steps:
                parameter = self.parameters[number]
                self.means[number], self.squares[number] = torch.zeros_like(parameter), torch.zeros_like(parameter)
                self.steps[number] = torch.zeros((), device=parameter.device)
        if not numbers:
            return
        torch._foreach_add_([self.steps[number] for number in numbers], 1)
        update = torch._fused_adamw_ if self.decay else torch._fused_adam_
        update(
            [self.parameters[number] for number in numbers],
            [gradient for number in numbers if (gradient := self.parameters[number].grad) is not None],
            [self.means[number] for number in numbers],
            [self.squares[number] for number in numbers],
            [],
            [self.steps[number] for number in numbers],
            lr=rate,
            beta1=self.betas[0],
            beta2=self.betas[1],
            weight_decay=self.decay,
            eps=self.epsilon,
            amsgrad=False,
            maximize=False,
        )

    def forget_gradients(self) -> None:
        """Before those of the next step are added up."""
        for parameter in self.parameters:
            parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """What is remembered of each parameter, by number and name."""
        return {f"{number}.{name}": value for name, values in self._named.items() for number, value in values.items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
        for values in self._named.values():
            values.clear()
        for key, value in tensors.items():
            number, name = key.split(".", 1)
            self._named[name][int(number)] = value.to(self.parameters[int(number)].device, copy=True)


def make_optimizer(module: nn.Module, recipe: TrainingRecipe) -> Adam:
    """The optimiser of a recipe."""
    decay = recipe.weight_decay if recipe.optimizer == "adamw" else 0.0
    return Adam(module.parameters(), (recipe.beta1, recipe.beta2), recipe.epsilon, decay)
