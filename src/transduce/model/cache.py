"""What a decoder remembers between steps, so that a step costs one token and not the whole sentence.

Shapes: R rows (sentences × beams), B sentences, G key-value heads, S source length, K head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["DecoderState", "KeyValueCache", "KeyValues", "LayerState"]


class KeyValues(NamedTuple):
    """Keys [B,G,S,d_k] and values [B,G,S,d_v] of one attention."""

    keys: Tensor
    values: Tensor


class KeyValueCache:
    """Keys and values of the tokens so far, of one self-attention, in buffers allocated once."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self._buffers: KeyValues | None = None

    def append(self, keys_RGTK: Tensor, values_RGTK: Tensor) -> KeyValues:
        """Add T new positions; returns all keys and values so far, as views of the buffers."""
        if self._buffers is None:
            self._buffers = KeyValues(self._allocate(keys_RGTK), self._allocate(values_RGTK))
        start, self.length = self.length, self.length + keys_RGTK.size(2)
        assert self.length <= self.capacity, "the search promised a capacity and went past it"
        for buffer, new in zip(self._buffers, (keys_RGTK, values_RGTK), strict=True):
            buffer[:, :, start : self.length] = new
        keys, values = self._buffers
        return KeyValues(keys[:, :, : self.length], values[:, :, : self.length])

    def reorder(self, rows: Tensor) -> None:
        """Make row i what row `rows[i]` was; fewer or more rows than before are fine."""
        if self._buffers is not None:
            keys, values = self._buffers
            self._buffers = KeyValues(self._reordered(keys, rows), self._reordered(values, rows))

    def _allocate(self, like_RGTK: Tensor) -> Tensor:
        rows, groups, _, width = like_RGTK.shape
        return like_RGTK.new_empty(rows, groups, self.capacity, width)

    def _reordered(self, buffer: Tensor, rows: Tensor) -> Tensor:
        written = buffer[:, :, : self.length]
        if rows.numel() > buffer.size(0):
            grown = buffer.new_empty(rows.numel(), *buffer.shape[1:])
            grown[:, :, : self.length] = written.index_select(0, rows)
            return grown
        # Most rows stay where they are from step to step: copy only those that move, within the same buffer.
        moved = (rows != torch.arange(rows.numel(), device=rows.device)).nonzero().squeeze(1)
        if moved.numel():
            written.index_copy_(0, moved, written.index_select(0, rows[moved]))
        return buffer[: rows.numel()]


@dataclass
class LayerState:
    """What one decoder layer remembers."""

    past: KeyValueCache
    """Of its self-attention: grows by a position at each step."""
    memory: KeyValues
    """Of its attention over the encoder's output: one entry per sentence, shared by the sentence's beams."""


@dataclass
class DecoderState:
    """What a decoder remembers of a batch that is being decoded; steps and `reorder` change it in place."""

    layers: list[LayerState]
    memory_mask: Tensor | None
    """[B,1,1,S], True on real source tokens."""
    beams: int = 1
    """Rows per sentence."""
    length: int = 0
    """Number of target positions so far."""

    def reorder(self, rows_BK: Tensor) -> None:
        """Keep, for each of B sentences, K beams: `rows_BK` says which rows of the present state they are.

        All beams of a sentence must come from the same sentence. Sentences that are not mentioned leave.
        """
        stay_B = rows_BK[:, 0] // self.beams
        for layer in self.layers:
            layer.past.reorder(rows_BK.flatten())
            if len(stay_B) < layer.memory.keys.size(0):
                layer.memory = KeyValues(layer.memory.keys[stay_B], layer.memory.values[stay_B])
        if self.memory_mask is not None:
            self.memory_mask = self.memory_mask[stay_B]
        self.beams = rows_BK.size(1)
