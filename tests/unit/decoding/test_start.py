"""What a decoder reads before it writes: no part of what is written, of its length or of its score."""

from __future__ import annotations

import pytest
import torch

from transduce.decoding import DecodingOptions, decode, score
from transduce.errors import InputError
from transduce.model import Transformer


@pytest.mark.parametrize("beam", [1, 4])
def test_a_start_is_read_and_not_written(model: Transformer, source_ids: torch.Tensor, beam: int) -> None:
    start = [5, 9]
    options = DecodingOptions(beam=beam, n_best=beam, start=start, max_length_ratio=0.0, max_length_extra=6)
    found = decode(model, source_ids, options)
    for row, hypotheses in zip(source_ids, found, strict=True):
        for each in hypotheses:
            assert len(each.tokens) <= 6
            read = torch.tensor([[1, *start, *each.tokens[:-1]]])
            with torch.no_grad():
                likely = model(row.unsqueeze(0), read)[0].log_softmax(-1)[len(start) :]
            expected = [float(likely[place, token]) for place, token in enumerate(each.tokens)]
            assert each.token_scores == pytest.approx(expected, abs=1e-4)
            again = score(model, row.unsqueeze(0), [each.tokens], options)[0]
            assert again.score == pytest.approx(each.score, abs=1e-4)


def test_a_prefix_comes_behind_it(model: Transformer, source_ids: torch.Tensor) -> None:
    limit = {"max_length_ratio": 0.0, "max_length_extra": 8, "beam": 1}
    both = decode(model, source_ids, DecodingOptions(start=[5], prefix=[9, 3], **limit))
    whole = decode(model, source_ids, DecodingOptions(prefix=[5, 9, 3], **limit | {"max_length_extra": 9}))
    for one, other in zip(both, whole, strict=True):
        assert one[0].tokens == other[0].tokens[1:]
        assert one[0].tokens[:2] == [9, 3]


def test_ids_outside_the_vocabulary_are_refused(model: Transformer, source_ids: torch.Tensor) -> None:
    with pytest.raises(InputError, match="start 0 holds id 99"):
        decode(model, source_ids, DecodingOptions(start=[99]))
