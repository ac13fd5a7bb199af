"""Name things with a trained encoder: texts, words, pictures, masked words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from transduce.bundle import Bundle, find_model
from transduce.errors import InputError
from transduce.text.masked import WRITTEN_MASK, encode_masked
from transduce.text.tokenizer import EOS, MASK, PAD

if TYPE_CHECKING:
    import numpy as np
    from torch import Tensor

__all__ = ["Classifier", "Filler", "Guess", "TaggedWord"]

AT_ONCE = 64
Reader = TypeVar("Reader", bound="_Encoder")


@dataclass(frozen=True)
class Guess:
    """A label, or a piece of text, and how probable the model finds it."""

    label: str
    probability: float


@dataclass(frozen=True)
class TaggedWord:
    """A word and its tag."""

    word: str
    tag: str
    probability: float


class _Encoder:
    """A model directory whose network reads ids and tells labels apart."""

    def __init__(self, bundle: Bundle) -> None:
        self.bundle = bundle

    @classmethod
    def load(cls: type[Reader], model: str | Path) -> Reader:
        """Load a model directory."""
        return cls(Bundle.open(find_model(model)))

    @cached_property
    def model(self) -> Any:
        """The network, loaded when it is first needed."""
        return self.bundle.module()

    @cached_property
    def _before(self) -> list[int]:
        """What stands before each text."""
        return self.bundle.vocabularies().source.before

    def _probabilities(self, rows: Sequence[Sequence[int]]) -> list[Tensor]:
        """For each row of ids (without its end) probabilities [its length, V], or [1, V] of the text as a whole."""
        import torch

        found: list[Tensor] = []
        before = self._before
        for start in range(0, len(rows), AT_ONCE):
            block = [[*before, *row, EOS] for row in rows[start : start + AT_ONCE]]
            longest = max(map(len, block))
            ids = torch.tensor([[*row, *[PAD] * (longest - len(row))] for row in block])
            with torch.inference_mode():
                probabilities = self.model(ids).float().softmax(-1)
            skipped = len(before) if probabilities.size(1) > 1 else 0
            found += [values[skipped : len(row)] for values, row in zip(probabilities, block, strict=True)]
        return found


class Classifier(_Encoder):
    """Names texts, words or pictures, whichever it has learned.

    >>> Classifier.load("my-classifier").classify(["My card has not arrived."])[0][0].label
    """

    def __init__(self, bundle: Bundle) -> None:
        bundle.require("classification", "tagging", "image-classification")
        super().__init__(bundle)
        self.labels = bundle.config.labels

    def classify(self, texts: Sequence[str], best: int = 3) -> list[list[Guess]]:
        """For each text its most probable labels, best first."""
        self.bundle.require("classification")
        vocabulary = self.bundle.vocabularies().source
        rows = [self._cut(row) for row in vocabulary.encode_batch(texts)]
        return [self._guesses(values[0], best) for values in self._probabilities(rows)]

    def tag(self, texts: Sequence[str]) -> list[list[TaggedWord]]:
        """For each text its words, which are what stands between spaces, with their tags."""
        self.bundle.require("tagging")
        vocabulary = self.bundle.vocabularies().source
        words = [text.split() for text in texts]
        pieces = [vocabulary.encode_batch(each) if each else [] for each in words]
        rows = [[token for word in each for token in word] for each in pieces]
        found = []
        for mine, parts, values in zip(words, pieces, self._probabilities(rows), strict=True):
            tagged, place = [], 0
            for word, part in zip(mine, parts, strict=True):
                guess = self._guesses(values[place], 1)[0]  # of its first piece, as it has learned
                tagged.append(TaggedWord(word, guess.label, guess.probability))
                place += len(part)
            found.append(tagged)
        return found

    def classify_pictures(self, images: np.ndarray, best: int = 3) -> list[list[Guess]]:
        """For each picture, bytes [N, height, width, channels], its most probable labels, best first."""
        import torch

        from transduce.data.images import pixels

        self.bundle.require("image-classification")
        found = []
        for start in range(0, len(images), AT_ONCE):
            with torch.inference_mode():
                probabilities = self.model(pixels(images[start : start + AT_ONCE])).float().softmax(-1)
            found += [self._guesses(values[0], best) for values in probabilities]
        return found

    def _guesses(self, probabilities: Tensor, best: int) -> list[Guess]:
        values, places = probabilities.topk(min(best, len(self.labels)))
        pairs = zip(places.tolist(), values.tolist(), strict=True)
        return [Guess(self.labels[place], value) for place, value in pairs]

    def _cut(self, row: list[int]) -> list[int]:
        places = self.model.config.max_length - 1 - len(self._before)
        return row[:places] if self.model.config.positions == "learned" else row


class Filler(_Encoder):
    """Guesses masked words.

    >>> Filler.load("my-encoder").fill("the [MASK] sat")[0][0].label
    """

    def __init__(self, bundle: Bundle) -> None:
        bundle.require("masked-language-model")
        super().__init__(bundle)
        self.vocabulary = bundle.vocabularies().source

    def encode(self, text: str) -> list[int]:
        """Ids of a text in which [MASK] stands for a hidden piece."""
        if WRITTEN_MASK not in text:
            raise InputError("nothing is masked.", remedy=f"Write {WRITTEN_MASK} for what is to be guessed.")
        return encode_masked(self.vocabulary, text)

    def fill(self, text: str, best: int = 5) -> list[list[Guess]]:
        """For each [MASK] of a text its most probable pieces, best first; a leading space begins a word."""
        ids = self.encode(text)
        values = self._probabilities([ids])[0]
        masked = [place for place, token in enumerate(ids) if token == self.vocabulary.tag(MASK)]
        return [self._guesses(values[place], best) for place in masked]

    def filled(self, text: str) -> str:
        """The text with its most probable pieces in place of the masks."""
        ids = self.encode(text)
        values = self._probabilities([ids])[0]
        places = (place for place, token in enumerate(ids) if token == self.vocabulary.tag(MASK))
        for place in places:
            ids[place] = int(self._allowed(values[place]).argmax())
        return self.vocabulary.decode(ids)

    def _guesses(self, probabilities: Tensor, best: int) -> list[Guess]:
        values, places = self._allowed(probabilities).topk(min(best, len(probabilities)))
        pieces = self.vocabulary.pieces(places.tolist())
        pairs = zip(pieces, values.tolist(), strict=True)
        return [Guess(piece.replace("▁", " "), value) for piece, value in pairs]

    def _allowed(self, probabilities: Tensor) -> Tensor:
        """Without what is no text."""
        allowed = probabilities.clone()
        allowed[[*self.vocabulary.unwritten, EOS]] = 0
        return allowed
