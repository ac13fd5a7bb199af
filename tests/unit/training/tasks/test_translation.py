"""Batches of the translation task: what randomness may change of a sentence, and what it may not."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.data.corpus import Corpus
from transduce.data.prepare import Preparation, Prepared, prepare
from transduce.decoding import DecodingOptions
from transduce.model import Transformer
from transduce.text.tokenizer import UNKNOWN
from transduce.training.recipe import Recipe
from transduce.training.tasks.translation import (
    DevSet,
    TranslationBatch,
    TranslationTask,
    decoded_at_once,
    dev_batches,
    with_unknowns,
)

LINES = [f"{subject} {verb} the {thing}{mark}" for subject in ("We", "They", "Kofi and Ama", "Nobody")
         for verb in ("painted", "understand", "repaired", "will find") for thing in ("house", "bicycles", "question")
         for mark in (".", "!", "?")]  # fmt: skip
SMALL = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1}

Make = Callable[..., tuple[TranslationTask, Prepared]]


@pytest.fixture
def make(tmp_path: Path) -> Make:
    """A task on two corpora of different target languages; keywords are settings of the tokenizer and of training."""

    def make(training: dict[str, Any] | None = None, **tokenizer: Any) -> tuple[TranslationTask, Prepared]:
        corpora = []
        for language, weight in (("xx", 1.0), ("yy", 0.5)):
            paths = tmp_path / f"train.en.{language}", tmp_path / f"train.{language}"
            paths[0].write_text("".join(f"{line}\n" for line in LINES))
            paths[1].write_text("".join(f"{language} {' '.join(reversed(line.split()))}\n" for line in LINES))
            corpora.append(Corpus(*paths, weight))
        recipe = Recipe.of(
            {
                "model": SMALL,
                "tokenizer": {"vocab_size": 400, **tokenizer},
                "training": {"batch_tokens": 100} | (training or {}),
            }
        )
        settings = recipe.tokenizer.model_dump(exclude={"dropout"})
        prepared = prepare(Preparation(corpora, **settings), tmp_path / "prepared")
        vocabularies = prepared.vocabularies
        target = None if vocabularies.shared else vocabularies.target.size
        model = Transformer(recipe.config(vocabularies.source.size, target))
        dev = DevSet(prepared.dev, prepared.dev_sources, prepared.dev_references)
        return TranslationTask(model, vocabularies, prepared.train, dev, recipe), prepared

    return make


def rows(batches: Iterator[TranslationBatch]) -> list[tuple[list[int], list[int]]]:
    """Source and label ids of all sentences, without padding and end."""
    return [
        ([token for token in source if token > 2], [token for token in labels if token > 2])
        for batch in batches
        for source, labels in zip(batch.source.tolist(), batch.labels.tolist(), strict=True)
    ]


@pytest.mark.parametrize("shared", [True, False])
def test_bpe_dropout_changes_the_cut_but_neither_text_nor_tag(make: Make, shared: bool) -> None:
    task, prepared = make(dropout=0.3, language_tags=True, shared=shared)
    source, target = prepared.vocabularies.source, prepared.vocabularies.target
    usual = {(source.decode(s), target.decode(t)): s for s, t in (
        (prepared.train.ids("source", index).tolist(), prepared.train.ids("target", index).tolist())
        for index in range(len(prepared.train))
    )}  # fmt: skip
    seen = rows(task.batches(0, 0))
    recut = 0
    for source_ids, target_ids in seen:
        texts = source.decode(source_ids), target.decode(target_ids)
        assert texts in usual
        assert source.pieces(source_ids[:1]) == [f"<2{texts[1].split()[0]}>"]
        assert not set(source.tags) & set(source_ids[1:])
        recut += source_ids != usual[texts]
    assert recut > 0.8 * len(seen)


def test_word_dropout_takes_words_but_never_the_tag(make: Make) -> None:
    task, prepared = make({"word_dropout": 0.5, "batch_tokens": 1000}, language_tags=True)
    batch = next(task.batches(0, 0))
    dropped = with_unknowns(batch.source, 0.5, keep=1)
    assert torch.equal(dropped[:, 0], batch.source[:, 0])
    assert set(batch.source[:, 0].tolist()) <= set(prepared.vocabularies.source.tags)
    words = batch.source[:, 1:] > UNKNOWN
    share = (dropped[:, 1:] == UNKNOWN)[words].float().mean()
    assert 0.4 < share < 0.6
    task, _ = make({"word_dropout": 0.5})
    batch = next(task.batches(0, 0))
    assert (with_unknowns(batch.source, 0.5)[:, 0] == UNKNOWN).any()  # without tags a first word is a word


@pytest.mark.parametrize("tokenizer", [{}, {"shared": False, "language_tags": True}], ids=str)
def test_an_epoch_can_be_gone_on_with_anywhere(make: Make, tokenizer: dict[str, Any]) -> None:
    """A corpus of weight 0.5 among them, cut anew each time: all of it comes from seed, epoch and number."""
    task, _ = make(dropout=0.2, **tokenizer)
    whole = list(task.batches(3, 0))
    assert len(whole) > 5
    for start in (1, 4):
        rest = list(task.batches(3, start))
        assert len(rest) == len(whole) - start
        assert all(
            torch.equal(ours, theirs)
            for one, other in zip(rest, whole[start:], strict=True)
            for ours, theirs in zip(one, other, strict=True)
        )


def test_an_epoch_sees_each_corpus_as_often_as_it_weighs(make: Make) -> None:
    task, prepared = make()
    sizes = [span.end - span.start for span in prepared.train.spans]
    targets = [prepared.vocabularies.target.decode(labels) for _, labels in rows(task.batches(0, 0))]
    counts = [sum(target.startswith(language) for target in targets) for language in ("xx", "yy")]
    assert counts == [sizes[0], round(sizes[1] / 2)]


def test_a_model_of_two_vocabularies_is_trained_and_validated(make: Make) -> None:
    task, prepared = make(shared=False, vocab_size=300)
    model = task.module
    assert model.source_embedding.tokens.weight is not model.target_embedding.tokens.weight
    assert model.projection.weight is model.target_embedding.tokens.weight
    assert model.projection.weight.shape[0] == prepared.vocabularies.target.size
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for batch in islice(task.batches(0, 0), 8):
        part = task.loss(batch)
        optimizer.zero_grad()
        (part.loss / part.tokens).backward()
        optimizer.step()
        losses.append(part.loss.item() / part.tokens)
    assert losses[-1] < losses[0] - 0.3
    model.eval()
    validation = task.validate()
    assert len(validation.samples) == 3
    assert validation.scores["perplexity"] < prepared.vocabularies.target.size


@pytest.mark.filterwarnings("ignore::UserWarning")  # of the compiler, about itself
def test_a_compiled_model_gives_the_same_loss_and_gradient(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    # Traced as for a GPU, run by PyTorch's plain operations: what its code generator does on a CPU takes minutes.
    monkeypatch.setattr(torch, "compile", partial(torch.compile, backend="eager"))
    plain, _ = make()
    compiled, _ = make({"compile": True})
    compiled.module.load_state_dict(plain.module.state_dict())
    for task in (plain, compiled):
        task.module.eval()  # dropout draws in another order
    for batch in islice(plain.batches(0, 0), 3):  # of several shapes
        found = []
        for task in (plain, compiled):
            part = task.loss(batch)
            found.append((part.loss, torch.autograd.grad(part.loss, list(task.module.parameters()))))
        torch.testing.assert_close(found[0][0], found[1][0])
        for mine, other in zip(found[0][1], found[1][1], strict=True):
            torch.testing.assert_close(mine, other, rtol=1e-4, atol=1e-5)
    assert torch._dynamo.utils.counters["stats"]["unique_graphs"] > 0


@pytest.mark.parametrize("width", [16, 1024, 20_000])
def test_however_wide_a_model_decoding_the_dev_set_stays_within_bounds(make: Make, width: int) -> None:
    _, prepared = make()
    pairs, options = prepared.train, DecodingOptions()  # more pairs than the dev set has
    batches = dev_batches(pairs, width, torch.device("cpu"))
    assert sorted(index for batch in batches for index in batch.tolist()) == list(range(len(pairs)))
    for batch in batches:
        longest = max(len(pairs.ids(side, int(index))) for index in batch for side in ("source", "target"))
        at_most = len(batch) * (longest + options.max_length(longest))
        assert len(batch) == 1 or at_most <= decoded_at_once(width)
    assert (len(batches) > 1) == (width > 16)
