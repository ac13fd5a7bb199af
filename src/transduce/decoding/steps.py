"""The stepper: all that search knows of a model."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Protocol, TypeVar

import torch
from torch import Tensor, nn

__all__ = ["State", "Stepper", "evaluating"]

State = TypeVar("State")


class Stepper(Protocol[State]):
    """A model that writes step by step, remembering in a state of its own kind what it has read and written.

    A batch holds B sentences of K beams each, as B·K rows, beams of a sentence side by side.
    """

    @property
    def bos_id(self) -> int:
        """The id that starts the decoder's input."""

    @property
    def eos_id(self) -> int:
        """The id that ends a sentence."""

    @property
    def pad_id(self) -> int:
        """The id that marks padding in source ids."""

    @property
    def output_size(self) -> int:
        """The number of ids that can be written."""

    @property
    def max_target_length(self) -> int | None:
        """The longest target the model has positions for; None where there is no limit."""

    def prefill(self, source_ids: Tensor, capacity: int) -> State:
        """Read sources [B,S]; the state has one row per sentence and room for `capacity` target positions."""

    def step(self, state: State, token_ids: Tensor) -> Tensor:
        """Logits [rows,T,V] after each of the next T tokens [rows,T]; the state moves on by T positions."""

    def reorder(self, state: State, rows: Tensor) -> None:
        """Keep the rows `rows` [B,K] of the state, K beams for each of B sentences; the others leave."""


@contextmanager
def evaluating(stepper: object) -> Iterator[None]:
    """Inference mode, and a module's dropout off for as long as it lasts, each part put back as it was."""
    parts = list(stepper.modules()) if isinstance(stepper, nn.Module) else []
    was_training = [part for part in parts if part.training]
    for part in was_training:
        part.training = False
    try:
        with torch.inference_mode():
            yield
    finally:
        for part in was_training:
            part.training = True
