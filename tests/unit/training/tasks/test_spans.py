"""Span corruption: what is cut out and what is left make the text again, exactly."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from transduce.data.shards import Pairs
from transduce.model import Transformer
from transduce.text import Tokenizer, Vocabularies
from transduce.text.tokenizer import BOS, EOS, PAD
from transduce.training.recipe import Recipe
from transduce.training.tasks.spans import SPANS, SpanCorruptionTask, corrupted
from transduce.training.tasks.translation import TranslationBatch

MARKS = list(range(1000, 1032))


def restored(source: list[int], target: list[int], marks: list[int]) -> list[int]:
    """The text: in place of each mark of the source what stands behind it in the target."""
    spans: dict[int, list[int]] = {}
    for token in target:
        if token in marks:
            assert token not in spans, "no mark stands twice"
            spans[token] = []
            last = spans[token]
        else:
            last.append(token)
    assert [token for token in source if token in marks] == list(spans) == marks[: len(spans)]
    return [token for each in source for token in (spans[each] if each in marks else [each])]


@given(
    ids=st.lists(st.integers(4, 999), min_size=1, max_size=400),
    share=st.floats(0.01, 0.99),
    mean=st.floats(1, 10),
    seed=st.integers(0, 2**20),
)
def test_source_and_target_restore_the_text_exactly(ids: list[int], share: float, mean: float, seed: int) -> None:
    source, target = corrupted(np.array(ids, dtype=np.uint32), MARKS, share, mean, np.random.default_rng(seed))
    assert restored(source.tolist(), target.tolist(), MARKS) == ids
    marked = [token in MARKS for token in source.tolist()]
    assert not any(one and other for one, other in pairwise(marked)), "no span beside another"
    assert any(marked)


def test_as_much_is_cut_out_as_asked_in_spans_of_the_length_asked() -> None:
    ids, generator = np.arange(4, 204, dtype=np.uint32), np.random.default_rng(1)
    lengths, starts = [], set()
    for _ in range(300):
        source, target = (side.tolist() for side in corrupted(ids, MARKS, 0.15, 3.0, generator))
        assert len(target) - sum(token in MARKS for token in target) == 30  # 15 % of 200
        places = [place for place, token in enumerate(target) if token in MARKS]
        lengths += [after - before - 1 for before, after in pairwise([*places, len(target)])]
        starts.add(source.index(MARKS[0]))
    assert np.mean(lengths) == pytest.approx(3, abs=0.05)
    assert set(range(1, 7)) <= set(lengths)
    assert {0, 10, 20} <= starts  # anywhere, the beginning included


def test_a_long_text_has_no_more_spans_than_marks() -> None:
    source, target = corrupted(np.arange(4, 904, dtype=np.uint32), MARKS[:5], 0.5, 1.0, np.random.default_rng(1))
    assert [token for token in source.tolist() if token >= 1000] == MARKS[:5]
    assert restored(source.tolist(), target.tolist(), MARKS[:5]) == list(range(4, 904))


# The task


@pytest.fixture
def task(texts: Pairs, vocabulary: Tokenizer) -> Callable[..., SpanCorruptionTask]:
    def task(**training: int) -> SpanCorruptionTask:
        recipe = Recipe.of(
            {
                "task": "text-to-text",
                "objective": {"span_corruption": True},
                "model": {
                    "d_model": 16,
                    "d_ff": 32,
                    "heads": 2,
                    "encoder_layers": 1,
                    "decoder_layers": 1,
                    "dropout": 0,
                },
                "training": {"batch_tokens": 120, "label_smoothing": 0} | training,
            }
        )
        torch.manual_seed(1)
        model = Transformer(recipe.config(vocabulary.size))
        return SpanCorruptionTask(model, Vocabularies(vocabulary, vocabulary), texts, texts, recipe)

    return task


Make = Callable[..., SpanCorruptionTask]


def rows(batches: list[TranslationBatch]) -> list[list[list[int]]]:
    return [[[token for token in ids if token != PAD] for ids in sides] for batch in batches for sides in zip(*(
        side.tolist() for side in batch), strict=True)]  # fmt: skip


def test_every_text_is_to_be_restored_once_an_epoch(task: Make, vocabulary: Tokenizer, lines: list[str]) -> None:
    marks = [vocabulary.tag(name) for name in SPANS]
    found = []
    for source, target, labels in rows(list(task().batches(0, 0))):
        assert source.pop() == labels.pop() == EOS
        assert target == [BOS, *labels]
        found.append(vocabulary.decode(restored(source, labels, marks)))
    assert sorted(found) == sorted(lines)


def test_other_spans_are_cut_out_in_each_epoch_and_the_same_ones_for_the_same_seed(task: Make) -> None:
    one, again, later, other = (
        rows(list(task(seed=seed).batches(epoch, 0))) for seed, epoch in ((5, 1), (5, 1), (5, 2), (6, 1))
    )
    assert one == again
    assert sorted(one) != sorted(later)
    assert sorted(one) != sorted(other)
    assert one[-20:] == rows(list(task(seed=5).batches(1, 2)))[-20:]  # gone on with from the third batch


def test_parts_of_a_batch_have_its_loss_and_gradient_together(task: Make) -> None:
    mine = task()
    batch = next(iter(mine.batches(0, 0)))
    whole = mine.loss(batch)
    parts = [mine.loss(part) for part in mine.split(batch, 3)]
    assert len(parts) == 3
    assert sum(part.tokens for part in parts) == whole.tokens
    assert sum(part.loss for part in parts).item() == pytest.approx(whole.loss.item(), rel=1e-5)
    parameters = list(mine.module.parameters())
    summed = torch.autograd.grad(sum(part.loss for part in parts), parameters)
    for one, other in zip(torch.autograd.grad(whole.loss, parameters), summed, strict=True):
        torch.testing.assert_close(one, other, atol=1e-4, rtol=1e-3)


def test_the_same_spans_are_measured_on_in_every_validation(task: Make) -> None:
    mine = task()
    mine.module.eval()
    first, second = mine.validate(), mine.validate()
    assert first.scores == second.scores
    assert first.scores["perplexity"] == pytest.approx(np.exp(first.scores["loss"]))
    assert first.decisive == -first.scores["loss"]
    assert task(seed=9).validate().scores["loss"] == pytest.approx(first.scores["loss"])
