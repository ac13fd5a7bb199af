"""What a decoder remembers between steps, so that a step costs one token and not the whole sentence.

Shapes: R rows (sentences × beams), B sentences, G key-value heads, S source length, K head.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

__all__ = ["CausalState", "DecoderState", "KeyValueCache", "KeyValues", "LayerState"]


class KeyValues(NamedTuple):
    """Keys [B,G,S,d_k] and values [B,G,S,d_v] of one attention."""

    keys: Tensor
    values: Tensor


ROOM = 16
"""Positions that a cache has room for at first: most sentences end long before the longest they might have."""


class KeyValueCache:
    """Keys and values of the tokens so far, of one self-attention, in buffers that double when they are full."""

    def __init__(self, capacity: int) -> None:
        self.capacity = capacity
        self.length = 0
        self._buffers: KeyValues | None = None

    def append(self, keys_RGTK: Tensor, values_RGTK: Tensor) -> KeyValues:
        """Add T new positions; returns all keys and values so far, as views of the buffers."""
        start, self.length = self.length, self.length + keys_RGTK.size(2)
        assert self.length <= self.capacity, "the search promised a capacity and went past it"
        if self._buffers is None:
            room = min(self.capacity, max(ROOM, self.length))
            self._buffers = KeyValues(_buffer(keys_RGTK, room), _buffer(values_RGTK, room))
        elif self.length > self._buffers.keys.size(2):
            room = min(self.capacity, max(2 * self._buffers.keys.size(2), self.length))
            self._buffers = KeyValues(*(_grown(buffer[:, :, :start], room) for buffer in self._buffers))
        for buffer, new in zip(self._buffers, (keys_RGTK, values_RGTK), strict=True):
            buffer[:, :, start : self.length] = new
        keys, values = self._buffers
        return KeyValues(keys[:, :, : self.length], values[:, :, : self.length])

    def reorder(self, rows: Tensor) -> None:
        """Make row i what row `rows[i]` was; fewer or more rows than before are fine."""
        if self._buffers is not None:
            keys, values = self._buffers
            self._buffers = KeyValues(self._reordered(keys, rows), self._reordered(values, rows))

    def _reordered(self, buffer: Tensor, rows: Tensor) -> Tensor:
        written = buffer[:, :, : self.length]
        if rows.numel() > buffer.size(0):
            return _grown(written.index_select(0, rows), buffer.size(2))
        # Most rows stay where they are from step to step: copy only those that move, within the same buffer.
        moved = (rows != torch.arange(rows.numel(), device=rows.device)).nonzero().squeeze(1)
        if moved.numel():
            written.index_copy_(0, moved, written.index_select(0, rows[moved]))
        return buffer[: rows.numel()]


def _buffer(like_RGTK: Tensor, room: int) -> Tensor:
    rows, groups, _, width = like_RGTK.shape
    return like_RGTK.new_empty(rows, groups, room, width)


def _grown(written_RGTK: Tensor, room: int) -> Tensor:
    """What is written, in a buffer of its own with more room."""
    buffer = _buffer(written_RGTK, room)
    buffer[:, :, : written_RGTK.size(2)] = written_RGTK
    return buffer


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


@dataclass
class CausalState:
    """What a decoder that stands alone remembers of a batch: of each layer the tokens so far."""

    layers: list[KeyValueCache]
    length: int = 0
    """Number of positions so far."""

    def reorder(self, rows_BK: Tensor) -> None:
        """Keep K beams for each of B texts: `rows_BK` says which rows of the present state they are."""
        for layer in self.layers:
            layer.reorder(rows_BK.flatten())
