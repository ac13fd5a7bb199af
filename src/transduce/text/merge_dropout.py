"""BPE-dropout (Provilkov et al., 2020): a text cut differently each time, so that a model learns what pieces hold.

SentencePiece can sample too, but its random generator cannot be brought into the same state in another process, and a
run that is continued must see what it would have seen.
"""

from __future__ import annotations

import random

__all__ = ["MergeDropout"]

SPACE = "▁"


class MergeDropout:
    """Segments words by the merges of a BPE vocabulary, leaving each merge out with some probability."""

    def __init__(self, ids: dict[str, int], ranks: dict[str, int]) -> None:
        self.ids = ids
        """Of all pieces, bytes (as <0x41>) included."""
        self.ranks = ranks
        """Of the pieces that merging makes: the lower, the earlier it was learned and the sooner it is merged."""

    def encode(self, text: str, dropout: float, generator: random.Random) -> list[int]:
        """Ids of a normalised text; without dropout, SentencePiece's own."""
        return [token for word in text.split(" ") if word for token in self._word(SPACE + word, dropout, generator)]

    def _word(self, word: str, dropout: float, generator: random.Random) -> list[int]:
        symbols = list(word)
        while True:
            best, place = len(self.ranks), -1
            for index in range(len(symbols) - 1):
                rank = self.ranks.get(symbols[index] + symbols[index + 1], best)
                # Only a merge that would be chosen needs to be drawn for: the others are not done either way.
                if rank < best and generator.random() >= dropout:
                    best, place = rank, index
            if place < 0:
                return [token for symbol in symbols for token in self._symbol(symbol)]
            symbols[place : place + 2] = [symbols[place] + symbols[place + 1]]

    def _symbol(self, symbol: str) -> list[int]:
        """A piece's id, or those of its bytes where a character has no piece."""
        if symbol in self.ids:
            return [self.ids[symbol]]
        return [self.ids[f"<0x{byte:02X}>"] for byte in symbol.encode()]
