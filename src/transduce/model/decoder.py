"""The decoder: a stack of N layers that writes one position at a time, reading the encoder's output."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import cast

from torch import Tensor, nn

from transduce.model.attention import Pattern
from transduce.model.cache import DecoderState, KeyValueCache, KeyValues, LayerState
from transduce.model.config import TransformerConfig
from transduce.model.layers import DecoderLayer, make_norm
from transduce.model.masks import causal_mask
from transduce.model.positions import AttentionPositions

__all__ = ["Decoder", "causal_pattern"]


class Decoder(nn.Module):
    """Maps the target so far, and z₁ … zₙ, to one vector per target position."""

    def __init__(self, config: TransformerConfig) -> None:
        super().__init__()
        config = config.decoder_side
        self.layers = nn.ModuleList(DecoderLayer(config) for _ in range(config.decoder_layers))
        self.norm = make_norm(config) if config.norm_position == "pre" else nn.Identity()
        self.positions = AttentionPositions(config, bidirectional=False)

    def forward(
        self,
        x_BTD: Tensor,
        memory_BSD: Tensor,
        memory_mask: Tensor | None = None,
        record: list[Tensor] | None = None,
        cross_record: list[Tensor] | None = None,
    ) -> Tensor:
        """All positions of an embedded target [B,T,D] at once, each blind to those after it."""
        pattern, memory_pattern = causal_pattern(self.positions, x_BTD, start=0), Pattern(memory_mask)
        for layer in self._layers():
            memory = layer.cross_attention.keys_and_values(memory_BSD)
            x_BTD = layer(x_BTD, pattern, memory, memory_pattern, None, record, cross_record)
        y_BTD: Tensor = self.norm(x_BTD)
        return y_BTD

    def prefill(self, memory_BSD: Tensor, memory_mask: Tensor | None, capacity: int) -> DecoderState:
        """Start a state for targets of at most `capacity` positions: the source's keys and values, computed once."""
        memories = (layer.cross_attention.keys_and_values(memory_BSD) for layer in self._layers())
        # In one piece for each head: as views of the projection they would be copied anew at every step.
        layers = [
            LayerState(KeyValueCache(capacity), KeyValues(memory.keys.contiguous(), memory.values.contiguous()))
            for memory in memories
        ]
        return DecoderState(layers, memory_mask)

    def step(self, x_RTD: Tensor, state: DecoderState) -> Tensor:
        """The next T positions (one, or a prefix at once) of each row; the state grows by them."""
        pattern, memory_pattern = causal_pattern(self.positions, x_RTD, state.length), Pattern(state.memory_mask)
        for layer, past in zip(self._layers(), state.layers, strict=True):
            x_RTD = layer(x_RTD, pattern, past.memory, memory_pattern, past.past)
        state.length += x_RTD.size(1)
        y_RTD: Tensor = self.norm(x_RTD)
        return y_RTD

    def _layers(self) -> Iterator[DecoderLayer]:
        return iter(cast(Iterable[DecoderLayer], self.layers))  # torch types the items of a list as any module


def causal_pattern(positions: AttentionPositions, x_BTD: Tensor, start: int) -> Pattern:
    """Positions start … start+T-1 looking at 0 … start+T-1, each at itself and at what comes before it."""
    new, end = x_BTD.size(1), start + x_BTD.size(1)
    mask = causal_mask(new, end, x_BTD.device) if new > 1 else None  # a single new position may see all
    bias, rotation = positions(start, end, like=x_BTD)
    return Pattern(mask, bias, rotation, causal=start == 0 and new > 1)
