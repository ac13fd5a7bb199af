"""Averaged weights: smoother than the last step's, and better (§6.1 averages the last checkpoints)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

__all__ = ["MovingAverage"]


class MovingAverage:
    """An exponential moving average of a module's parameters.

    Early on it follows the weights closely, (1+t)/(10+t) in place of the decay, so that it does not drag the starting
    values along.
    """

    def __init__(self, module: nn.Module, decay: float) -> None:
        self.decay = decay
        self.updates = 0
        self.values: dict[str, Tensor] = {
            name: parameter.detach().clone() for name, parameter in module.named_parameters()
        }

    @torch.no_grad()
    def update(self, module: nn.Module) -> None:
        """Take in the weights of one more step."""
        decay = min(self.decay, (1 + self.updates) / (10 + self.updates))
        self.updates += 1
        parameters = dict(module.named_parameters())
        torch._foreach_lerp_(list(self.values.values()), [parameters[name].detach() for name in self.values], 1 - decay)

    @torch.no_grad()
    def swap(self, module: nn.Module) -> None:
        """Exchange the module's weights with the average; twice is back again."""
        for name, parameter in module.named_parameters():
            kept = parameter.detach().clone()
            parameter.copy_(self.values[name])
            self.values[name].copy_(kept)
