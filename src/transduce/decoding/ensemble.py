"""Several models that write one translation together."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from transduce.decoding.steps import Stepper
from transduce.errors import ModelError

__all__ = ["Ensemble"]


class Ensemble(nn.Module):
    """A stepper whose next token has the mean of its members' probabilities:  p(y) = Σᵢ pᵢ(y) / n.

    Members may differ in anything but their ids. Each keeps a state of its own; an ensemble's state is a list of them.
    """

    def __init__(self, members: Sequence[Stepper[Any]]) -> None:
        super().__init__()
        if len({(each.output_size, each.bos_id, each.eos_id, each.pad_id) for each in members}) != 1:
            raise ModelError("members of an ensemble write the same ids.", remedy="Give models of one vocabulary.")
        self.members = list(members)
        self.networks = nn.ModuleList(each for each in members if isinstance(each, nn.Module))
        self.bos_id, self.eos_id, self.pad_id = members[0].bos_id, members[0].eos_id, members[0].pad_id
        self.output_size = members[0].output_size

    @property
    def max_target_length(self) -> int | None:
        """The longest target that all members have positions for; None where there is no limit."""
        return min((most for each in self.members if (most := each.max_target_length) is not None), default=None)

    def prefill(self, source_ids: Tensor, capacity: int) -> list[Any]:
        """Let each member read the sources."""
        return [each.prefill(source_ids, capacity) for each in self.members]

    def step(self, state: list[Any], token_ids: Tensor) -> Tensor:
        """Logarithms of the mean probabilities [rows,T,V], which are logits as well."""
        logits = (each.step(mine, token_ids) for each, mine in zip(self.members, state, strict=True))
        log_probs = torch.stack([each.float().log_softmax(-1) for each in logits])
        return log_probs.logsumexp(0) - math.log(len(self.members))

    def reorder(self, state: list[Any], rows: Tensor) -> None:
        """Keep the rows `rows` [B,K] of every member's state."""
        for each, mine in zip(self.members, state, strict=True):
            each.reorder(mine, rows)
