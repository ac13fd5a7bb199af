"""Our ids as another tool has them: a vocabulary that was imported goes back with the ids that it came with.

Where one of their ids serves two purposes, ours are two (see `transduce.interop.renumber`). They become one again, for
as long as training has not made them different; then the one that starts a text is a token of its own there too.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

import torch
from torch import Tensor, nn

from transduce.interop.renumber import READ, WRITTEN
from transduce.text.tokenizer import BOS, EOS, PAD

__all__ = ["Numbering", "renumbered", "same_rows"]


@dataclass(frozen=True)
class Numbering:
    """Which id of ours each of theirs is, and the other way round."""

    rows: Sequence[int]
    """By their ids: the id of ours whose row of a matrix it has."""
    ids: Mapping[int, int]
    """By ours: theirs."""
    source_ends: int | None = None
    """By what a source ends there instead of the end of a sentence: the code of its language, as in mBART."""
    end_inside: int | None = None
    """Our id of the end of a sentence that stands before that."""

    @classmethod
    def same(cls, size: int) -> Numbering:
        """Ours."""
        return cls(range(size), {index: index for index in range(size)})

    @property
    def source_rows(self) -> list[int]:
        """As `rows`, for a matrix that only sources are read with."""
        rows = list(self.rows)
        if self.source_ends is not None and self.end_inside is not None:
            rows[self.source_ends], rows[self.ids[EOS]] = EOS, self.end_inside
        return rows

    def source(self, ids: Sequence[int]) -> list[int]:
        """Their ids of a source, which ends with its end."""
        ends = self.ids[EOS] if self.source_ends is None else self.source_ends
        return [ends if index == EOS else self.ids[index] for index in ids]

    def of(self, ids: Sequence[int]) -> list[int]:
        """Their ids of any other text."""
        return [self.ids[index] for index in ids]

    def ours(self, ids: Sequence[int]) -> list[int]:
        """Our ids of what was written there; what ours has no id for is left out."""
        return [self.rows[index] for index in ids if index < len(self.rows)]

    def columns(self, logits: Tensor) -> Tensor:
        """Their logits [..., V] in our order; what has no id there is -∞."""
        found = logits.new_full((*logits.shape[:-1], max(self.ids) + 1), -torch.inf)
        found[..., list(self.rows)] = logits[..., : len(self.rows)]
        return found


def same_rows(model: nn.Module, one: int, other: int) -> bool:
    """Whether two ids are the same to a model: it reads and writes them alike, but for a bias."""
    state = model.state_dict()
    return all(torch.equal(state[name][one], state[name][other]) for name in (*READ, *WRITTEN) if name in state)


@torch.no_grad()
def renumbered(model: nn.Module, numbering: Numbering) -> Any:
    """The same model with their ids; without the bias of logits, if that says nothing any more."""
    config: Any = model.config
    rows, source_rows = list(numbering.rows), numbering.source_rows
    if rows == list(range(config.vocab_size)):
        return model
    state = dict(model.state_dict())
    names_labels = getattr(config, "labels", None) is not None
    for name, value in state.items():
        if name in READ:
            state[name] = value[source_rows if name == READ[0] else rows]
        elif (name in WRITTEN or name == "projection.bias") and not names_labels:
            state[name] = value[rows]
    pad, eos = numbering.ids[PAD], numbering.ids[EOS]
    changed: dict[str, Any] = {
        "vocab_size": len(rows),
        "pad_id": pad if pad != eos else int(eos == 0),  # which nothing reads, where there is no padding
        "bos_id": numbering.ids[BOS],
        "eos_id": eos,
    }
    bias = state.get("projection.bias")
    if bias is not None and not names_labels and not bias.any():
        changed["logits_bias"] = False
    both = [state.get(name) for name in (READ[0], WRITTEN[0])]
    if both[0] is not None and both[1] is not None and torch.equal(both[0], both[1]):
        changed["tying"] = {"target": "all", "none": "embeddings"}.get(config.tying, config.tying)
    made = cast(Any, type(model))(config.replace(**changed))
    for name, parameter in made.named_parameters():
        parameter.copy_(state[name])
    return made.eval()
