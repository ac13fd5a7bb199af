"""Where the batches of each task come from: texts with labels or tags, masked texts, windows of a stream, pictures."""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from typing import Literal

import numpy as np
import torch

from transduce.data.batches import BatchPlan, Indices
from transduce.data.images import Pictures, pixels
from transduce.data.shards import Ids, Pairs
from transduce.model.vision import VisionConfig
from transduce.text.tokenizer import BOS, EOS, MASK, Tokenizer
from transduce.training.recipe import Recipe
from transduce.training.task import tensor
from transduce.training.tasks.prediction import Labelled

__all__ = ["MaskedTexts", "NamedTexts", "PictureRows", "Windows"]

MEASURED_TOKENS = 4000
"""Tokens that are read at once in validation."""
CPU = torch.device("cpu")


class NamedTexts:
    """Texts with a label each, or with a tag for each word."""

    def __init__(
        self,
        pairs: Pairs,
        recipe: Recipe,
        vocabulary: Tokenizer,
        head: Literal["sentence", "token"],
        device: torch.device = CPU,
        *,
        shuffle: bool = True,
    ) -> None:
        self.pairs, self.recipe, self.vocabulary, self.device = pairs, recipe, vocabulary, device
        self.head = head
        tokens = recipe.training.batch_tokens if shuffle else MEASURED_TOKENS
        self._plan = BatchPlan(pairs, tokens, recipe.training.seed, shuffle=shuffle)

    def plan(self, epoch: int) -> Iterator[Indices]:
        """Texts of like length together."""
        return self._plan.epoch(epoch)

    def batch(self, indices: Indices, drawn: tuple[int, ...] | None) -> Labelled:
        """Texts, cut into other pieces each time if the recipe says so, and their labels."""
        rows, beside = ([self.pairs.ids(side, int(index)) for index in indices] for side in ("source", "target"))
        if drawn is not None and self.recipe.tokenizer.dropout and self.head == "sentence":
            seed = int(np.random.default_rng((self.recipe.training.seed, *drawn)).integers(2**31))
            rows = _resegmented(rows, self.vocabulary, self.recipe.tokenizer.dropout, seed)
        before = self.vocabulary.before
        inputs = tensor(self.device, [_between(before, ids, EOS) for ids in rows])
        if self.head == "sentence":
            labels = torch.from_numpy(np.stack(beside).astype(np.int64)).to(self.device)
        else:  # tags are counted from 1, because 0 says that there is none; as of padding and the end
            labels = tensor(self.device, [_between([0] * len(before), tags, 0) for tags in beside], fill=0) - 1
        return Labelled(inputs, labels)


class MaskedTexts:
    """Texts with some tokens hidden, others each time, as BERT learns.

    Of the tokens to be guessed, eight in ten are masked, one is another at random and one stays as it is.
    """

    def __init__(
        self,
        pairs: Pairs,
        recipe: Recipe,
        vocabulary: Tokenizer,
        device: torch.device = CPU,
        *,
        shuffle: bool = True,
    ) -> None:
        self.pairs, self.recipe, self.device = pairs, recipe, device
        self._mask, self._before = vocabulary.tag(MASK), vocabulary.before
        special = {*vocabulary.unwritten, EOS}
        self._ordinary = np.array([index for index in range(vocabulary.size) if index not in special], dtype=np.uint32)
        tokens = recipe.training.batch_tokens if shuffle else MEASURED_TOKENS
        self._plan = BatchPlan(pairs, tokens, recipe.training.seed, shuffle=shuffle)

    def plan(self, epoch: int) -> Iterator[Indices]:
        """Texts of like length together."""
        return self._plan.epoch(epoch)

    def batch(self, indices: Indices, drawn: tuple[int, ...] | None) -> Labelled:
        """Texts with hidden tokens; on the dev set the same ones in every validation."""
        seed = (self.recipe.training.seed, *drawn) if drawn is not None else (0, int(indices[0]))
        generator = np.random.default_rng(seed)
        inputs, labels = [], []
        for index in indices:
            ids = self.pairs.ids("source", int(index))
            hidden, asked = self._masked(ids, generator)
            inputs.append(_between(self._before, hidden, EOS))
            labels.append(_between([0] * len(self._before), asked, 0))
        # Labels are kept one higher until they are a tensor, so that 0 can say that nothing is asked.
        return Labelled(tensor(self.device, inputs), tensor(self.device, labels, fill=0) - 1)

    def _masked(self, ids: Ids, generator: np.random.Generator) -> tuple[Ids, Ids]:
        asked = generator.random(len(ids)) < self.recipe.objective.masked
        if len(ids) and not asked.any():  # a text of which nothing is asked would be read in vain
            asked[generator.integers(len(ids))] = True
        lot = generator.random(len(ids))
        others = self._ordinary[generator.integers(len(self._ordinary), size=len(ids), dtype=np.uint32)]
        hidden = np.where(asked & (lot < 0.8), np.uint32(self._mask), ids)
        hidden = np.where(asked & (lot >= 0.9), others, hidden)
        return hidden.astype(np.uint32), np.where(asked, ids + 1, 0).astype(np.uint32)


class Windows:
    """Stretches of a stream of tokens, each behind a start, as a language model reads: every token is predicted."""

    def __init__(
        self, pairs: Pairs, recipe: Recipe, context: int, device: torch.device = CPU, *, shuffle: bool = True
    ) -> None:
        self.pairs, self.recipe, self.context, self.device = pairs, recipe, context, device
        self.tokens, self.shuffle = pairs.tokens["source"], shuffle
        self.rows = max(1, (recipe.training.batch_tokens if shuffle else MEASURED_TOKENS) // context)

    def plan(self, epoch: int) -> Iterator[Indices]:
        """Where windows start: side by side, from another place in each epoch and in another order."""
        if not self.shuffle:
            starts = np.arange(0, self.tokens, self.context)
            whole = starts[starts + self.context <= self.tokens]
            yield from (whole[place : place + self.rows] for place in range(0, len(whole), self.rows))
            if len(whole) < len(starts):  # the rest, which is shorter
                yield starts[-1:]
            return
        generator = np.random.default_rng((self.recipe.training.seed, epoch))
        room = max(0, self.tokens - self.context)
        starts = np.arange(generator.integers(min(self.context, room + 1)), room + 1, self.context)
        generator.shuffle(starts)
        yield from (starts[place : place + self.rows] for place in range(0, len(starts), self.rows))

    def batch(self, indices: Indices, drawn: tuple[int, ...] | None) -> Labelled:
        """[B,context]: each token's label is the token itself, and what is read is everything before it."""
        rows = [
            self.pairs.stream("source", int(start), min(int(start) + self.context, self.tokens)) for start in indices
        ]
        labels = tensor(self.device, rows)
        starts = torch.full((len(labels), 1), BOS, device=self.device)
        return Labelled(torch.cat((starts, labels[:, :-1]), dim=1), labels)


class PictureRows:
    """Pictures with a label each."""

    def __init__(
        self,
        pictures: Pictures,
        recipe: Recipe,
        config: VisionConfig,
        device: torch.device = CPU,
        *,
        shuffle: bool = True,
    ) -> None:
        self.pictures, self.recipe, self.device, self.shuffle = pictures, recipe, device, shuffle
        tokens = recipe.training.batch_tokens if shuffle else MEASURED_TOKENS
        self.rows = max(1, tokens // (math.prod(config.grid) + 1))

    def plan(self, epoch: int) -> Iterator[Indices]:
        """All pictures, in another order in each epoch."""
        order = np.arange(len(self.pictures))
        if self.shuffle:
            np.random.default_rng((self.recipe.training.seed, epoch)).shuffle(order)
        yield from (order[place : place + self.rows] for place in range(0, len(order), self.rows))

    def batch(self, indices: Indices, drawn: tuple[int, ...] | None) -> Labelled:
        """Pictures as numbers around 0, and their labels."""
        labels = torch.from_numpy(self.pictures.labels[indices]).unsqueeze(1)
        return Labelled(pixels(self.pictures.images[indices]).to(self.device), labels.to(self.device))


def _between(before: list[int], ids: Ids, after: int) -> Ids:
    """Ids with what stands before them, and one behind."""
    return np.concatenate((before, ids, [after])).astype(np.uint32)


def _resegmented(rows: list[Ids], vocabulary: Tokenizer, dropout: float, seed: int) -> list[Ids]:
    texts = [vocabulary.decode(ids) for ids in rows]
    pieces = vocabulary.encode_sampled(texts, dropout, random.Random(seed))
    return [np.array(each, dtype=np.uint32) for each in pieces]
