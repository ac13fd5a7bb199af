"""The engine that is always there: PyTorch, with every decoding option."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import torch

from transduce.decoding import DecodingOptions, Hypothesis, decode
from transduce.model import Transformer
from transduce.text.tokenizer import EOS, PAD

__all__ = ["TorchEngine"]

BATCH_TOKENS = 2000
"""Source tokens that are decoded at once, padding included."""


class TorchEngine:
    """Runs a model with PyTorch; sentences are sorted and batched by tokens, whatever their order."""

    def __init__(self, model: Transformer) -> None:
        self.model = model

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        """For each source (ids without end of sentence) its hypotheses, best first."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        prefixes = options.prefixes(len(sources))
        for batch in _by_tokens(sources):
            longest = max(len(sources[index]) for index in batch) + 1
            rows = [[*sources[index], EOS, *[PAD] * (longest - 1 - len(sources[index]))] for index in batch]
            chosen = options.replace(prefix=[prefixes[index] for index in batch]) if options.prefix else options
            for index, hypotheses in zip(batch, decode(self.model, torch.tensor(rows), chosen), strict=True):
                results[index] = hypotheses
        return results


def _by_tokens(sources: Sequence[Sequence[int]]) -> Iterator[list[int]]:
    """Indices of sources of like length, longest first, so that running out of memory shows at once."""
    batch: list[int] = []
    for index in sorted(range(len(sources)), key=lambda index: -len(sources[index])):
        if batch and (len(batch) + 1) * (len(sources[batch[0]]) + 1) > BATCH_TOKENS:
            yield batch
            batch = []
        batch.append(index)
    if batch:
        yield batch
