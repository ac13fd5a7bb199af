"""A model that is a table, for tests that must know its probabilities."""

from __future__ import annotations

import pytest
import torch

EOS = 2


class Scripted:
    """A stepper whose log-probabilities are written down: table[tokens so far] gives the next ones.

    It also shows that search needs nothing but the protocol.
    """

    bos_id, eos_id, pad_id, output_size, max_target_length = 1, EOS, 0, 5, None

    def __init__(self, table: dict[tuple[int, ...], dict[int, float]]) -> None:
        self.table = table
        self.rows: list[int] = []
        """How many rows each step was asked for."""

    def prefill(self, source_ids: torch.Tensor, capacity: int) -> list[tuple[int, ...]]:
        return [()] * len(source_ids)

    def step(self, state: list[tuple[int, ...]], token_ids: torch.Tensor) -> torch.Tensor:
        self.rows.append(len(token_ids))
        for row, tokens in enumerate(token_ids.tolist()):
            state[row] += tuple(token for token in tokens if token != self.bos_id)
        logits = torch.full((len(state), 1, self.output_size), -1e9)
        for row, written in enumerate(state):
            for token, probability in self.table.get(written, {EOS: 1.0}).items():
                logits[row, 0, token] = torch.tensor(probability).log()
        return logits

    def reorder(self, state: list[tuple[int, ...]], rows: torch.Tensor) -> None:
        state[:] = [state[row] for row in rows.flatten().tolist()]


@pytest.fixture
def scripted() -> type[Scripted]:
    return Scripted
