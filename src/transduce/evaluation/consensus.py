"""Which of several translations the others agree with most: minimum Bayes risk, with chrF as what is gained.

The most probable translation is not always the best one: where many probable ones say the same in other words, one of
them is the safer choice (Kumar and Byrne, 2004; Eikema and Aziz, 2020). Text in, an order out; no engine is asked.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["agreement", "by_consensus"]

LONGEST_NGRAM = 6
BETA = 1.0
"""Recall counts as much as precision. In chrF2, the metric, it counts twice, and what is longest wins (docs/log.md)."""


def by_consensus(texts: Sequence[str], scores: Sequence[float] | None = None) -> list[int]:
    """The places of the texts, the one first that agrees best with all; with equal ones, in the order they had.

    Each counts as much as it is probable among them by its score, or all alike if there are none. Scores over a length
    penalty, as search gives them, are flatter than log-probabilities and choose better (docs/log.md).
    """
    if len(texts) < 2:
        return list(range(len(texts)))
    expected = agreement(texts) @ _weights(len(texts), scores)
    # What differs by rounding alone is equal.
    return sorted(range(len(texts)), key=lambda place: -round(float(expected[place]), 9))


def agreement(texts: Sequence[str]) -> NDArray[np.float64]:
    """chrF1 from 0 to 100 of every text (row) if every text (column) were its reference, as sacreBLEU computes it."""
    bare = ["".join(text.split()) for text in texts]
    count = len(bare)
    owners = np.repeat(np.arange(count), [len(text) for text in bare])
    symbols = np.array([ord(symbol) for text in bare for symbol in text], dtype=np.int64)
    _, symbols = np.unique(symbols, return_inverse=True)
    alphabet = int(symbols.max(initial=0)) + 1
    ngrams, starts = symbols, np.arange(len(symbols))
    precision, recall, orders = (np.zeros((count, count)) for _ in range(3))
    for order in range(1, LONGEST_NGRAM + 1):
        if order > 1:  # a longer n-gram is a shorter one and the symbol behind it, unless that is another text's
            whole = starts + order - 1 < len(symbols)
            ngrams, starts = ngrams[whole], starts[whole]
            within = owners[starts] == owners[starts + order - 1]
            ngrams, starts = ngrams[within], starts[within]
            ngrams = ngrams * alphabet + symbols[starts + order - 1]
        kinds, ngrams = np.unique(ngrams, return_inverse=True)
        if not len(kinds):
            break
        found = np.bincount(owners[starts] * len(kinds) + ngrams, minlength=count * len(kinds))
        found = found.reshape(count, len(kinds))
        matches = np.minimum(found[:, None], found[None]).sum(axis=2)
        lengths = found.sum(axis=1)
        both = (lengths[:, None] > 0) & (lengths[None] > 0)
        orders += both
        precision += np.where(both, matches / np.maximum(lengths[:, None], 1), 0.0)
        recall += np.where(both, matches / np.maximum(lengths[None], 1), 0.0)
    precision, recall = precision / np.maximum(orders, 1), recall / np.maximum(orders, 1)
    below = BETA**2 * precision + recall
    score: NDArray[np.float64] = 100 * (1 + BETA**2) * precision * recall / np.where(below > 0, below, 1.0)
    return score


def _weights(count: int, scores: Sequence[float] | None) -> NDArray[np.float64]:
    if scores is None:
        return np.full(count, 1 / count)
    shares = np.exp(np.asarray(scores) - max(scores))
    weights: NDArray[np.float64] = shares / shares.sum()
    return weights
