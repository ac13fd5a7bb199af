"""The engine that is always there: PyTorch, with every decoding option."""

from __future__ import annotations

import warnings

import torch
from torch import nn

from transduce.engines.stepper_engine import StepperEngine
from transduce.model import Transformer

__all__ = ["TorchEngine"]


class TorchEngine(StepperEngine):
    """Runs a model with PyTorch; sentences are sorted and batched by tokens, whatever their order."""

    def __init__(self, model: Transformer, int8: bool = False) -> None:
        self.model = _in_int8(model) if int8 else model
        super().__init__(self.model)

    @property
    def workers(self) -> int:
        """Threads that decode a batch each; one where a GPU does the work."""
        return torch.get_num_threads() if next(self.model.parameters()).device.type == "cpu" else 1


def _in_int8(model: Transformer) -> Transformer:
    """The model with most of its matrices in eight bits, and what they are multiplied with rounded on the way.

    Attention takes its queries, keys and values from parts of one matrix, which stays as it is.
    """
    from torch.ao.quantization import quantize_dynamic

    linear = {name for name, part in model.named_modules() if type(part) is nn.Linear and not name.endswith("qkv")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch announces another way that needs its compiler
        quantised: Transformer = quantize_dynamic(model.eval(), linear, dtype=torch.qint8)  # type: ignore[no-untyped-call]
    return quantised
