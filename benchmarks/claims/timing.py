"""Table 1: how time grows with the length of a sentence, for one layer and for whole networks of the same width."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from claims.cases import BASE, RECURRENT, TRANSFORMER
from claims.runs import network
from transduce.model import MultiHeadAttention, TransformerConfig
from transduce.model.attention import Pattern

__all__ = ["LENGTHS", "measured_times"]

LENGTHS = [8, 16, 32, 64, 128, 256, 512]
VOCABULARY = 1000
SENTENCES = 8
"""In the batch of a whole network; of a layer it is one."""


def measured_times() -> list[dict[str, Any]]:
    """Milliseconds of CPU time of a forward and backward pass, by length; one thread, the best of some."""
    torch.set_num_threads(1)
    torch.manual_seed(1)
    attention = MultiHeadAttention(TransformerConfig.tiny(VOCABULARY, **TRANSFORMER))
    width = TRANSFORMER["d_model"]
    recurrent = nn.GRU(width, width, batch_first=True)
    models = [network(case, VOCABULARY).eval() for case in (BASE, RECURRENT)]
    rows = []
    for length in LENGTHS:
        x = torch.randn(1, length, width)
        ids = torch.randint(4, VOCABULARY, (2, SENTENCES, length))
        times = [
            _best(lambda x=x: attention(x, Pattern()).sum().backward()),
            _best(lambda x=x: recurrent(x)[0].sum().backward()),
            *(_best(lambda model=model, ids=ids: model(*ids).sum().backward()) for model in models),
        ]
        names = ("self-attention layer", "recurrent layer", "Transformer", "recurrent network")
        rows.append(
            {"length": length} | {name: round(1e3 * seconds, 3) for name, seconds in zip(names, times, strict=True)}
        )
    return rows


def _best(work: Callable[[], object], least_seconds: float = 0.3) -> float:
    """The fastest of at least five, after two that warm up."""
    work()
    work()
    found: list[float] = []
    while len(found) < 5 or sum(found) < least_seconds:
        start = time.process_time()
        work()
        found.append(time.process_time() - start)
    return min(found)
