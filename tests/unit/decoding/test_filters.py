"""Each filter by itself, on values that can be read."""

from __future__ import annotations

import pytest
import torch

from transduce.decoding.filters import (
    FORBIDDEN,
    forbid,
    forbid_repeated_ngrams,
    keep_only,
    keep_top_k,
    keep_top_p,
    penalise_repetition,
)

LOG_PROBS = torch.tensor([[0.1, 0.2, 0.3, 0.4], [0.4, 0.3, 0.2, 0.1]]).log()


def allowed(log_probs: torch.Tensor) -> list[list[int]]:
    return [(row > FORBIDDEN).nonzero().flatten().tolist() for row in log_probs.view(-1, 4)]


def test_forbid() -> None:
    assert allowed(forbid(LOG_PROBS, [1, 3])) == [[0, 2], [0, 2]]


def test_keep_only() -> None:
    kept = keep_only(LOG_PROBS, torch.tensor([[2], [0]]))
    assert allowed(kept) == [[2], [0]]
    assert kept[0, 2] == LOG_PROBS[0, 2]


@pytest.mark.parametrize(
    ("written", "size", "expected"),
    [
        ([[1, 2, 1], [3, 3, 0]], 2, [[0, 1, 3], [0, 1, 2, 3]]),  # 1 2 has been; after 0 nothing has
        ([[1, 2, 1], [3, 3, 0]], 1, [[0, 3], [1, 2]]),
        ([[0, 1, 2, 0, 1], [0, 1, 2, 1, 0]], 3, [[0, 1, 3], [0, 1, 2, 3]]),
        ([[1], [2]], 2, [[0, 1, 2, 3], [0, 1, 2, 3]]),
        ([[], []], 1, [[0, 1, 2, 3], [0, 1, 2, 3]]),
    ],
)
def test_forbid_repeated_ngrams(written: list[list[int]], size: int, expected: list[list[int]]) -> None:
    assert allowed(forbid_repeated_ngrams(LOG_PROBS, torch.tensor(written).long(), size)) == expected


def test_penalise_repetition() -> None:
    penalised = penalise_repetition(LOG_PROBS, torch.tensor([[3, 3], [0, 1]]), penalty=2.0)
    expected = torch.tensor([[0.1, 0.2, 0.3, 0.16], [0.16, 0.09, 0.2, 0.1]]).log()
    torch.testing.assert_close(penalised, expected)


def test_keep_top_k() -> None:
    assert allowed(keep_top_k(LOG_PROBS, 2)) == [[2, 3], [0, 1]]
    assert keep_top_k(LOG_PROBS, 9) is LOG_PROBS


def test_keep_top_p() -> None:
    assert allowed(keep_top_p(LOG_PROBS, 0.65)) == [[2, 3], [0, 1]]
    assert allowed(keep_top_p(LOG_PROBS, 0.75)) == [[1, 2, 3], [0, 1, 2]]
    assert allowed(keep_top_p(LOG_PROBS, 0.01)) == [[3], [0]]


def test_filters_leave_their_input_alone() -> None:
    before = LOG_PROBS.clone()
    written = torch.tensor([[1, 2, 1], [3, 3, 0]])
    forbid(LOG_PROBS, [0])
    keep_only(LOG_PROBS, torch.tensor([1]))
    forbid_repeated_ngrams(LOG_PROBS, written, 1)
    penalise_repetition(LOG_PROBS, written, 2.0)
    keep_top_k(LOG_PROBS, 1)
    keep_top_p(LOG_PROBS, 0.5)
    assert torch.equal(LOG_PROBS, before)
