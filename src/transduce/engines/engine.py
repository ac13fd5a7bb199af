"""What every engine does: ids in, hypotheses out."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Literal, Protocol

from transduce.decoding import DecodingOptions, Hypothesis

__all__ = ["Engine", "EngineName"]

EngineName = Literal["auto", "torch", "torch-int8", "ctranslate2", "onnx"]
"""`auto` is CTranslate2 where a model has been compiled for it, else PyTorch."""


class Engine(Protocol):
    """A model that can be run."""

    works_ahead: ClassVar[bool] = False
    """Whether work starts when it is begun, and not when the result is asked for."""
    penalises_last: ClassVar[bool] = False
    """Whether a length penalty only ranks what was found, so that one search serves all of them."""
    calibrated: bool = True
    """Whether a token's probability is what the model's confidence was learned from: its own, among all tokens."""

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        """For each source (ids without end of sentence) its hypotheses, best first."""

    def begin(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> Callable[[], list[list[Hypothesis]]]:
        """As `decode`, but what is returned gives the result when called; an engine that can, works meanwhile."""
        return partial(self.decode, sources, options)

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], start: Sequence[int] = ()
    ) -> list[Hypothesis]:
        """How likely the model finds each target (ids without end of sentence, as the sources), in their order.

        `start` is what the decoder reads before it writes, see `DecodingOptions`.
        """
