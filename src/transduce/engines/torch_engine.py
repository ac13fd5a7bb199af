"""The engine that is always there: PyTorch, with every decoding option."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Iterator, Sequence

import torch
from torch import nn

from transduce.decoding import DecodingOptions, Hypothesis, decode, score
from transduce.engines.engine import Engine
from transduce.model import Transformer
from transduce.model.workers import Workers
from transduce.text.tokenizer import EOS, PAD

__all__ = ["TorchEngine"]

BATCH_TOKENS = 1000
"""Source tokens that a worker decodes at once, padding included."""
BATCH_ROWS = 8
"""Sentences that a worker decodes at once at least: a step costs nearly the same for one row as for eight."""
SCORED_TOKENS = 1000
"""Tokens of either side that are scored at once, padding included: each has logits over the whole vocabulary."""


class TorchEngine(Engine):
    """Runs a model with PyTorch; sentences are sorted and batched by tokens, whatever their order."""

    def __init__(self, model: Transformer, int8: bool = False) -> None:
        self.model = _in_int8(model) if int8 else model
        self._turn = threading.Lock()  # the number of PyTorch's threads, which workers divide, is one for all

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        """For each source (ids without end of sentence) its hypotheses, best first."""
        results: list[list[Hypothesis]] = [[] for _ in sources]
        count = torch.get_num_threads() if next(self.model.parameters()).device.type == "cpu" else 1
        share = -(-sum(len(source) + 1 for source in sources) // count)
        batches = list(_by_tokens([len(source) + 1 for source in sources], min(BATCH_TOKENS, share), BATCH_ROWS))

        def found(batch: list[int]) -> list[list[Hypothesis]]:
            return decode(self.model, _padded([sources[index] for index in batch]), options.of(batch, len(sources)))

        with self._turn, Workers(min(count, len(batches))) as workers:
            for batch, decoded in zip(batches, workers.map(found, batches), strict=True):
                for index, hypotheses in zip(batch, decoded, strict=True):
                    results[index] = hypotheses
        return results

    def score(self, sources: Sequence[Sequence[int]], targets: Sequence[Sequence[int]]) -> list[Hypothesis]:
        """How likely the model finds each target (ids without end of sentence, as the sources), in their order."""
        results: dict[int, Hypothesis] = {}
        lengths = [max(len(source), len(target)) + 1 for source, target in zip(sources, targets, strict=True)]
        for batch in _by_tokens(lengths, SCORED_TOKENS):
            source_ids = _padded([sources[index] for index in batch])
            found = score(self.model, source_ids, [[*targets[index], EOS] for index in batch])
            results |= zip(batch, found, strict=True)
        return [results[index] for index in range(len(sources))]


def _in_int8(model: Transformer) -> Transformer:
    """The model with most of its matrices in eight bits, and what they are multiplied with rounded on the way.

    Attention takes its queries, keys and values from parts of one matrix, which stays as it is.
    """
    from torch.ao.quantization import quantize_dynamic

    linear = {name for name, part in model.named_modules() if type(part) is nn.Linear and not name.endswith("qkv")}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch announces another way that needs its compiler
        quantised: Transformer = quantize_dynamic(model.eval(), linear, dtype=torch.qint8)  # type: ignore[no-untyped-call]
    return quantised


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
