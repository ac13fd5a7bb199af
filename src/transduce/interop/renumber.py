"""Their ids become ours: padding, start, end and unknown are 0, 1, 2 and 3 in every model directory.

Rows of embeddings and of the output are put into another order. Where one of their ids serves two purposes (Marian
starts with padding, M2M-100 with the end of a sentence), its row is there twice; the one that only starts is never
written.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from transduce.errors import BundleError
from transduce.text.tokenizer import BOS, EOS, PAD, UNKNOWN

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["MUTED", "READ", "WRITTEN", "Renumbering"]

MUTED = -100.0
"""Added to the logit of a copy. It has e⁻¹⁰⁰ of the probability of what it copies: none, in the numbers of a model."""
FIRST = ("<pad>", "<s>", "</s>", "<unk>")
READ = ("source_embedding.tokens.weight", "embedding.tokens.weight")
WRITTEN = ("target_embedding.tokens.weight", "projection.weight")
"""Matrices with a row for each id that is read, and for each that is written."""


@dataclass(frozen=True)
class Renumbering:
    """Which of their ids each of ours was."""

    theirs: list[int]
    """By our ids; one of theirs may be there more than once."""
    copies: frozenset[int]
    """Ours that repeat another one and are never written."""

    @classmethod
    def of(cls, size: int, *, pad: int | None, start: int, eos: int, unknown: int | None) -> Renumbering:
        """Of so many ids of theirs, of which these are special; they may coincide, or be missing, but for the end."""
        for name, index in (("padding", pad), ("start", start), ("end", eos), ("unknown", unknown)):
            if index is not None and not 0 <= index < size:
                raise BundleError(
                    f"the id of its {name} is {index}, but the model has {size} ids.", remedy="Copy the model again."
                )
        used = {eos}
        first, copies = {EOS: eos}, set()
        for ours, wanted in ((PAD, pad), (UNKNOWN, unknown), (BOS, start)):
            if wanted is None or wanted in used:
                copies.add(ours)
            used.add(eos if wanted is None else wanted)
            first[ours] = eos if wanted is None else wanted
        rest = [index for index in range(size) if index not in used]
        return cls([*(first[index] for index in sorted(first)), *rest], frozenset(copies))

    @classmethod
    def restored(cls, theirs: Sequence[int]) -> Renumbering:
        """The one whose `theirs` these were."""
        used, copies = {theirs[EOS]}, set()
        for ours in (PAD, UNKNOWN, BOS, *range(len(FIRST), len(theirs))):
            copies |= {ours} if theirs[ours] in used else set()
            used.add(theirs[ours])
        return cls(list(theirs), frozenset(copies))

    def with_copy(self, theirs: int) -> Renumbering:
        """With one more id of ours, the last, for one of theirs that has one already."""
        return Renumbering([*self.theirs, theirs], self.copies | {len(self.theirs)})

    @property
    def size(self) -> int:
        """How many ids there are now."""
        return len(self.theirs)

    def ours(self) -> dict[int, int]:
        """Our id for each of theirs; of a copied one, that which is written."""
        numbered = {index: place for place, index in enumerate(self.theirs) if place in self.copies}
        return numbered | {index: place for place, index in enumerate(self.theirs) if place not in self.copies}

    def names(self, theirs: Sequence[str]) -> list[str]:
        """The names of our ids, each once: what is called like one of our first four gets a mark."""
        found = list(FIRST)
        taken = set(FIRST)
        for index in self.theirs[len(FIRST) :]:
            name = theirs[index]
            while name in taken:
                name += "'"
            taken.add(name)
            found.append(name)
        return found

    def rows(self, matrix: Tensor) -> Tensor:
        """A matrix, or a bias, with a row for each of our ids."""
        import torch

        return matrix[torch.tensor(self.theirs)].contiguous()

    def bias(self, bias: Tensor | None, size: int) -> Tensor:
        """The bias of the output, of which theirs may have none: copies have hardly a chance."""
        import torch

        found = torch.zeros(size) if bias is None else bias.clone()
        found = self.rows(found)
        found[sorted(self.copies)] += MUTED
        return found
