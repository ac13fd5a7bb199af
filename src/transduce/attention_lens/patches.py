"""Attention over a picture: every layer and head, patch by patch.

Shapes: L layers, H heads, N patches and the class token.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from transduce.attention_lens.maps import Encoding, Guess, Kind, LabelledMap, Weights, encoded

__all__ = ["CLASS", "PictureMaps"]

CLASS = "class"
"""What the token is called that collects what a picture shows."""


@dataclass(frozen=True, eq=False)
class PictureMaps:
    """Where a model looked while it told what a picture shows.

    >>> maps.encoder[layer, head, 0, 1:]  # the share of the class token's attention on each patch
    >>> maps.over_picture(0)[layer, head]  # the same, as patches lie in the picture
    """

    model: str
    title: str
    """What the picture is called."""
    picture: NDArray[np.uint8]
    """[height, width] in grey, or [height, width, 3]."""
    grid: tuple[int, int]
    """Patches down and across."""
    encoder: Weights
    """[L,H,N,N]: the class token first, then the patches row by row."""
    guesses: list[Guess]
    """What the picture shows: labels with their probabilities."""

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of attention that the model has."""
        return ["encoder"] if len(self.encoder) else []

    def patches(self) -> LabelledMap:
        """All maps with labels: the class token, then each patch as row,column from 1."""
        down, across = self.grid
        names = [CLASS, *(f"{row + 1},{column + 1}" for row in range(down) for column in range(across))]
        return LabelledMap(self.encoder, names, names)

    def over_picture(self, token: int = 0) -> Weights:
        """[L,H,down,across]: where a token looks (0 is the class token), as patches lie in the picture."""
        layers, heads = self.encoder.shape[:2]
        return self.encoder[:, :, token, 1:].reshape(layers, heads, *self.grid)

    def as_json(self, encoding: Encoding = "numbers") -> dict[str, Any]:
        """Everything as plain values for JSON; see `AttentionMaps.as_json`."""
        return {
            "model": self.model,
            "title": self.title,
            "picture": encoded(self.picture, encoding),
            "grid": list(self.grid),
            "maps": {kind: encoded(self.encoder, encoding) for kind in self.kinds},
            "guesses": [asdict(guess) for guess in self.guesses],
        }
