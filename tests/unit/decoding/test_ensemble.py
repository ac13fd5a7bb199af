"""Several models that write together: the mean of their probabilities, whatever each is."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from transduce.decoding import DecodingOptions, decode, score
from transduce.decoding.ensemble import Ensemble
from transduce.errors import ModelError
from transduce.model import Transformer

OPTIONS = DecodingOptions(beam=3, n_best=2, max_length_extra=6)


@pytest.fixture
def models(make_model: Callable[..., Transformer]) -> list[Transformer]:
    """Of other widths and depths: members need only have the same ids."""
    return [make_model(), make_model(d_model=24, decoder_layers=1), make_model(encoder_layers=3)]


def test_a_token_has_the_mean_of_the_members_probabilities(
    models: list[Transformer], source_ids: torch.Tensor, target_ids: torch.Tensor
) -> None:
    ensemble = Ensemble(models)
    with torch.no_grad():
        found = ensemble.step(ensemble.prefill(source_ids, target_ids.size(1)), target_ids).exp()
        plain = sum(model(source_ids, target_ids).softmax(-1) for model in models) / len(models)
    torch.testing.assert_close(found, plain)
    torch.testing.assert_close(found.sum(-1), torch.ones(target_ids.shape))


def test_a_model_beside_itself_writes_what_it_writes_alone(model: Transformer, source_ids: torch.Tensor) -> None:
    alone, together = decode(model, source_ids, OPTIONS), decode(Ensemble([model, model]), source_ids, OPTIONS)
    assert [[each.tokens for each in best] for best in together] == [[each.tokens for each in best] for best in alone]
    scores = [torch.tensor([each.score for best in found for each in best]) for found in (alone, together)]
    torch.testing.assert_close(*scores)


def test_search_scores_what_the_ensemble_finds_likely(models: list[Transformer], source_ids: torch.Tensor) -> None:
    """Each hypothesis, with its cache and its reordered beams, has the probability that one pass over it gives."""
    ensemble = Ensemble(models)
    best = [hypotheses[0] for hypotheses in decode(ensemble, source_ids, OPTIONS)]
    again = score(ensemble, source_ids, [each.tokens for each in best])
    expected = torch.tensor([each.log_probability for each in again])
    torch.testing.assert_close(torch.tensor([each.log_probability for each in best]), expected)


def test_what_all_find_second_best_can_win(scripted: Callable[[Any], Any]) -> None:
    tables = [{(): {3: 0.6, 4: 0.4}}, {(): {2: 0.55, 4: 0.45}}]
    first = [decode(scripted(table), torch.tensor([[3, 4]]))[0][0].tokens for table in tables]
    together = decode(Ensemble([scripted(table) for table in tables]), torch.tensor([[3, 4]]))[0][0].tokens
    assert (first, together) == ([[3, 2], [2]], [4, 2])


def test_members_drop_nothing_out_while_they_search(
    make_model: Callable[..., Transformer], source_ids: torch.Tensor
) -> None:
    ensemble = Ensemble([make_model(dropout=0.5).train(), make_model(dropout=0.5).train()])
    once, twice = (decode(ensemble, source_ids, OPTIONS) for _ in range(2))
    assert once == twice
    assert all(each.training for each in ensemble.networks)


def test_the_shortest_of_the_members_positions_count(make_model: Callable[..., Transformer]) -> None:
    members = [make_model(), make_model(positions="learned", max_length=9)]
    assert members[0].max_target_length is None
    assert Ensemble(members).max_target_length == members[1].max_target_length == 9


def test_models_of_other_vocabularies_are_refused(make_model: Callable[..., Transformer]) -> None:
    with pytest.raises(ModelError, match="same ids"):
        Ensemble([make_model(), make_model(vocab_size=18)])
