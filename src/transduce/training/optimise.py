"""Adam (§5.3), AdamW and Muon, their memory as plain tensors.

PyTorch's optimiser classes load its compiler when they are made: 1.4 seconds and 70 MB that training has no use for.
The arithmetic is its own: one pass over the weights.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from transduce.model.attention import MultiHeadAttention
from transduce.training.placing import placed
from transduce.training.recipe import TrainingRecipe

__all__ = ["Adam", "Muon", "Optimizer", "make_optimizer", "orthogonalised"]

SHORTEST = 1e-6
"""A row below this length has no direction, and is not divided by nothing."""


class Adam:
    """With gradient g:  m ← β₁m + (1-β₁)g,  v ← β₂v + (1-β₂)g²,  w ← w - rate · m̂ / (√v̂ + ε).

    m̂ = m / (1-β₁ᵗ) and v̂ = v / (1-β₂ᵗ) after t steps. With `decay` (AdamW) w shrinks by rate · decay · w as well.
    The rows e of `unit` tables are brought back to length 1 after each step:  e ← e / |e|.
    """

    def __init__(
        self,
        parameters: Iterable[nn.Parameter],
        betas: tuple[float, float],
        epsilon: float,
        decay: float = 0.0,
        unit: Sequence[Tensor] = (),
    ) -> None:
        self.parameters, self.unit = list(parameters), unit
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
        for table in self.unit:
            table.div_(torch.linalg.vector_norm(table, dim=1, keepdim=True).clamp_min(SHORTEST))

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
            like = self.parameters[int(number)]
            self._named[name][int(number)] = placed(value, like) if value.dim() else value.to(like.device, copy=True)


class _Matrix(NamedTuple):
    """A matrix of a layer: some rows of a parameter, for W^Q, W^K and W^V stand in one."""

    parameter: nn.Parameter
    start: int
    end: int


class Muon:
    """Orthogonal steps for the matrices of the layers (Jordan et al., 2024), Adam for all the rest.

    With gradient G of a matrix W [r, c]:  M ← μM + (1-μ)G,  W ← (1 - rate · decay) W - rate · 0.2 √max(r, c) · UVᵀ,
    where UΣVᵀ is the singular value decomposition of μM + (1-μ)G. All directions are learned at the same pace, also
    those that the gradient hardly shows. 0.2 √max(r, c) makes steps as large as Adam's, so both take the same rate
    (Liu et al., 2025). Only the matrices decay: their steps are of one size, and so weigh less the larger W has grown.
    """

    def __init__(
        self,
        module: nn.Module,
        betas: tuple[float, float],
        epsilon: float,
        decay: float = 0.0,
        momentum: float = 0.95,
        unit: Sequence[Tensor] = (),
    ) -> None:
        self.matrices = _layer_matrices(module)
        self.decay, self.momentum = decay, momentum
        mine = {matrix.parameter for matrix in self.matrices}
        self.adam = Adam((each for each in module.parameters() if each not in mine), betas, epsilon, unit=unit)
        self.means: dict[int, Tensor] = {}
        """M, by number of the matrix."""

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the parameters that have a gradient."""
        self.adam.step(rate)
        alike: dict[tuple[int, int], list[tuple[Tensor, Tensor]]] = {}
        for number, (parameter, start, end) in enumerate(self.matrices):
            if parameter.grad is None:
                continue
            weight, gradient = parameter[start:end], parameter.grad[start:end]
            mean = self.means.setdefault(number, torch.zeros_like(weight))
            mean.lerp_(gradient, 1 - self.momentum)
            direction = gradient.lerp(mean, self.momentum)
            if weight.size(0) > weight.size(1):
                weight, direction = weight.mT, direction.mT
            alike.setdefault((weight.size(0), weight.size(1)), []).append((weight, direction))
        for (_, longer), members in alike.items():  # matrices of the same shape in one go
            steps = orthogonalised(torch.stack([direction for _, direction in members]))
            for (weight, _), direction in zip(members, steps, strict=True):
                weight.mul_(1 - rate * self.decay).sub_(direction, alpha=rate * 0.2 * longer**0.5)

    def forget_gradients(self) -> None:
        """Before those of the next step are added up."""
        self.adam.forget_gradients()
        for matrix in self.matrices:
            matrix.parameter.grad = None

    def tensors(self) -> dict[str, Tensor]:
        """What is remembered of each parameter, by number and name."""
        momenta = {f"{number}.momentum": mean for number, mean in self.means.items()}
        return momenta | {f"adam.{name}": value for name, value in self.adam.tensors().items()}

    def load(self, tensors: dict[str, Tensor]) -> None:
        """Take back what `tensors` gave."""
        prefix = "adam."
        self.adam.load({key[len(prefix) :]: value for key, value in tensors.items() if key.startswith(prefix)})
        self.means.clear()
        for key, value in tensors.items():
            if not key.startswith(prefix):
                number = int(key.split(".", 1)[0])
                self.means[number] = value.to(self.matrices[number].parameter.device, copy=True)


Optimizer = Adam | Muon


def orthogonalised(matrices_NRC: Tensor) -> Tensor:
    """About UVᵀ for each matrix UΣVᵀ with R ≤ C: all singular values brought near 1, between 0.7 and 1.2.

    By five rounds of X ← aX + (bA + cA²)X with A = XXᵀ (Newton and Schulz), in Jordan's coefficients: they care for
    speed near zero, not for the last digit near one.
    """
    a, b, c = 3.4445, -4.7750, 2.0315
    x: Tensor = matrices_NRC / (torch.linalg.matrix_norm(matrices_NRC, keepdim=True) + 1e-7)
    for _ in range(5):
        gram = x @ x.mT
        x = torch.baddbmm(x, torch.baddbmm(gram, gram, gram, beta=b, alpha=c), x, beta=a)
    return x


def make_optimizer(module: nn.Module, recipe: TrainingRecipe) -> Optimizer:
    """The optimiser of a recipe."""
    betas = (recipe.beta1, recipe.beta2)
    tables = {each.weight: None for each in module.modules() if isinstance(each, nn.Embedding)}
    unit = list(tables) if recipe.unit_embeddings else []
    if recipe.optimizer == "muon":
        return Muon(module, betas, recipe.epsilon, recipe.weight_decay, unit=unit)
    decay = recipe.weight_decay if recipe.optimizer == "adamw" else 0.0
    return Adam(module.parameters(), betas, recipe.epsilon, decay, unit)


def _layer_matrices(module: nn.Module) -> list[_Matrix]:
    """The matrices of all linear maps that stand in stacks of layers, in order; tables and vectors are none."""
    widths = {each.qkv: each.widths for each in module.modules() if isinstance(each, MultiHeadAttention)}
    found: dict[nn.Linear, list[_Matrix]] = {}
    for stack in (each for each in module.modules() if isinstance(each, nn.ModuleList)):
        for linear in (each for each in stack.modules() if isinstance(each, nn.Linear)):
            ends = list(accumulate(widths.get(linear, [linear.out_features])))
            places = zip([0, *ends[:-1]], ends, strict=True)
            found[linear] = [_Matrix(cast(nn.Parameter, linear.weight), *place) for place in places]
    return [matrix for matrices in found.values() for matrix in matrices]
