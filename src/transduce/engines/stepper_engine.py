"""What engines share whose model is a stepper: our own search, so that every decoding option means the same."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from typing import Any

import torch

from transduce.decoding import DecodingOptions, Hypothesis, Stepper, decode, score
from transduce.engines.engine import Engine
from transduce.model.workers import Workers
from transduce.text.tokenizer import EOS, PAD

__all__ = ["StepperEngine"]

BATCH_TOKENS = 1000
"""Source tokens that a worker decodes at once, padding included."""
BATCH_ROWS = 8
"""Sentences that a worker decodes at once at least: a step costs nearly the same for one row as for eight."""
SCORED_TOKENS = 1000
"""Tokens of either side that are scored at once, padding included: each has logits over the whole vocabulary."""


class StepperEngine(Engine):
    """Searches with a model that writes step by step; sentences are sorted and batched by tokens."""

    def __init__(self, stepper: Stepper[Any]) -> None:
        self._stepper = stepper
        self._turn = threading.Lock()  # the number of PyTorch's threads, which workers divide, is one for all

    @property
    def workers(self) -> int:
        """Threads that decode a batch each."""
        return torch.get_num_threads()

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        """For each source (ids without end of sentence) its hypotheses, best first."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        share = -(-sum(len(source) + 1 for source in sources) // self.workers)
        batches = list(_by_tokens([len(source) + 1 for source in sources], min(BATCH_TOKENS, share), BATCH_ROWS))

        def found(batch: list[int]) -> list[list[Hypothesis]]:
            return decode(self._stepper, _padded([sources[index] for index in batch]), options.of(batch, len(sources)))

        with self._turn, Workers(min(self.workers, len(batches))) as workers:
            for batch, decoded in zip(batches, workers.map(found, batches), strict=True):
                for index, hypotheses in zip(batch, decoded, strict=True):
                    results[index] = hypotheses
        return results

    def score(
        self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]], start: Sequence[int] = ()
    ) -> list[Hypothesis]:
        """How likely the model finds each target (ids without end of sentence, as the sources), in their order.

        `start` is what the decoder reads before it writes, see `DecodingOptions`.
        """
        options = DecodingOptions(start=start)
        results: dict[int, Hypothesis] = {}
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
        for batch in _by_tokens(lengths, SCORED_TOKENS):
            source_ids = _padded([sources[index] for index in batch])
            found = score(self._stepper, source_ids, [[*targets[index], EOS] for index in batch], options)
            results |= zip(batch, found, strict=True)
        return [results[index] for index in range(len(sources))]


def _padded(sources: Sequence[Sequence[int]]) -> torch.Tensor:
    """A batch [B,S], with an end to each sentence."""
    longest = max(map(len, sources))
    return torch.tensor([[*source, EOS, *[PAD] * (longest - len(source))] for source in sources])


def _by_tokens(lengths: Sequence[int], most: int, rows: int = 1) -> Iterator[list[int]]:
    """Indices of sentences of like length, longest first, so that running out of memory shows at once.

    No more than `most` tokens together, padding included, unless it takes them to come to so many `rows`.
    """
    batch: list[int] = []
    for index in sorted(range(len(lengths)), key=lambda index: -lengths[index]):
        if len(batch) >= rows and (len(batch) + 1) * lengths[batch[0]] > most:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
