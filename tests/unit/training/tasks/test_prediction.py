"""Naming things as a task: the loss is plain cross-entropy over what is asked, however a batch is split."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from transduce.data.images import Pictures
from transduce.data.shards import Pairs
from transduce.model.dropout import Dropout, randomness
from transduce.model.family import make_network
from transduce.model.vision import VisionConfig
from transduce.text import Tokenizer
from transduce.training.events import Sample
from transduce.training.recipe import Recipe
from transduce.training.tasks.examples import MaskedTexts, NamedTexts, PictureRows, Windows
from transduce.training.tasks.prediction import IGNORED, Labelled, PredictionTask

SMALL = {"d_model": 16, "d_ff": 32, "heads": 2, "encoder_layers": 1, "decoder_layers": 1, "dropout": 0}
TASKS = ["language-model", "masked-language-model", "classification", "tagging", "image-classification"]
LABELS = 3
every_task = pytest.mark.parametrize("name", TASKS)


@pytest.fixture
def make(vocabulary: Tokenizer, lines: list[str], write_pairs: Callable[..., Pairs]) -> Callable[..., PredictionTask]:
    """A task of each kind on the same few texts, or on pictures."""

    def make(name: str, training: dict[str, Any] | None = None, samples: Callable[[], list[Sample]] = list) -> Any:
        model = SMALL | ({"patch": 2} if name == "image-classification" else {})
        settings = {"batch_tokens": 150, "label_smoothing": 0} | (training or {})
        recipe = Recipe.of({"task": name, "model": model, "training": settings})
        rows = vocabulary.encode_batch(lines)
        of_data: dict[str, Any] = {}
        if name == "image-classification":
            of_data = {"labels": LABELS, "height": 4, "width": 4, "channels": 1}
            images = np.random.default_rng(1).integers(0, 256, (100, 4, 4, 1)).astype(np.uint8)
            pictures = Pictures(images, np.arange(100) % LABELS)
            config: Any = VisionConfig.base(3, **(model | of_data))
            sources = [PictureRows(pictures, recipe, config, shuffle=shuffle) for shuffle in (True, False)]
        elif name == "language-model":
            sources = [Windows(write_pairs(rows), recipe, 16, shuffle=shuffle) for shuffle in (True, False)]
        elif name == "masked-language-model":
            sources = [MaskedTexts(write_pairs(rows), recipe, vocabulary, shuffle=shuffle) for shuffle in (True, False)]
        else:
            of_data = {"labels": LABELS}
            sentence = name == "classification"
            beside = [[len(row) % LABELS] if sentence else [token % (LABELS + 1) for token in row] for row in rows]
            head: Any = "sentence" if sentence else "token"
            pairs = write_pairs(rows, beside)
            sources = [NamedTexts(pairs, recipe, vocabulary, head, shuffle=shuffle) for shuffle in (True, False)]
        config = recipe.config(vocabulary.size, **of_data)
        torch.manual_seed(1)
        module = make_network(recipe.family, vars(config))
        return PredictionTask(module, recipe, *sources, samples=samples)

    return make


Make = Callable[..., PredictionTask]


def first(task: PredictionTask) -> Labelled:
    return next(iter(task.batches(0, 0)))


def logits_and_wanted(task: PredictionTask, batch: Labelled) -> tuple[torch.Tensor, torch.Tensor]:
    asked = batch.labels != IGNORED
    return task.module(batch.inputs)[asked], batch.labels[asked]


@every_task
@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_the_loss_and_its_gradient_are_those_of_plain_cross_entropy(make: Make, name: str, smoothing: float) -> None:
    task = make(name, {"label_smoothing": smoothing})
    batch = first(task)
    logits, wanted = logits_and_wanted(task, batch)
    plain = F.cross_entropy(logits, wanted, reduction="sum", label_smoothing=smoothing)
    ours = task.loss(batch)
    assert ours.tokens == len(wanted) > 0
    torch.testing.assert_close(ours.loss, plain, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        ours.nll, F.cross_entropy(logits, wanted, reduction="sum").detach(), rtol=1e-4, atol=1e-4
    )
    parameters = dict(task.module.named_parameters())
    mine = torch.autograd.grad(ours.loss, list(parameters.values()))
    theirs = torch.autograd.grad(plain, list(parameters.values()))
    for label, one, other in zip(parameters, mine, theirs, strict=True):
        torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-4, msg=label)
        assert one.abs().sum() > 0, label


@every_task
@pytest.mark.parametrize("parts", [2, 3, 100])
def test_parts_of_a_batch_have_its_loss_together(make: Make, name: str, parts: int) -> None:
    task = make(name)
    batch = first(task)
    whole, split = task.loss(batch), task.split(batch, parts)
    assert 1 < len(split) <= parts
    found = [task.loss(part) for part in split]
    assert sum(each.tokens for each in found) == whole.tokens
    assert sum(each.loss.item() for each in found) == pytest.approx(whole.loss.item(), rel=1e-4)
    assert sum(task.size(part) for part in split) <= task.size(batch)


def test_a_part_has_no_padding_that_it_does_not_need(make: Make) -> None:
    task = make("tagging")
    batch = Labelled(torch.tensor([[5, 6, 7, 2], [5, 2, 0, 0]]), torch.tensor([[0, 1, 0, -1], [1, -1, -1, -1]]))
    one, other = task.split(batch, 2)
    assert other.inputs.tolist() == [[5, 2]]
    assert other.labels.tolist() == [[1, -1]]
    assert torch.equal(one.inputs, batch.inputs[:1])


@every_task
def test_an_epoch_can_be_gone_on_with_anywhere(make: Make, name: str) -> None:
    task = make(name)
    whole, rest = list(task.batches(3, 0)), list(task.batches(3, 2))
    assert len(rest) == len(whole) - 2 > 0
    for one, other in zip(rest, whole[2:], strict=True):
        assert all(torch.equal(mine, theirs) for mine, theirs in zip(one, other, strict=True))


@every_task
def test_the_dev_set_is_measured_by_plain_counting(make: Make, name: str) -> None:
    task = make(name, samples=lambda: [Sample("a", "b", "c")])
    task.module.eval()
    loss, right, asked = 0.0, 0, 0
    for indices in task.dev.plan(0):
        with torch.no_grad():
            logits, wanted = logits_and_wanted(task, task.dev.batch(indices, None))
        loss += F.cross_entropy(logits, wanted, reduction="sum").item()
        right += int((logits.argmax(-1) == wanted).sum())
        asked += len(wanted)
    seen: list[int] = []
    measured = task.measure(seen.append)
    assert (measured.right, measured.asked) == (right, asked)
    assert measured.loss == pytest.approx(loss / asked, rel=1e-4)
    assert sum(seen) == sum(len(indices) for indices in task.dev.plan(0))
    validation = task.validate()
    assert validation.scores["loss"] == pytest.approx(loss / asked, rel=1e-4)
    if "language-model" in name:
        assert validation.scores["perplexity"] == pytest.approx(math.exp(loss / asked), rel=1e-3)
        assert validation.decisive == -validation.scores["loss"]
    else:
        assert validation.scores["accuracy"] == pytest.approx(100 * right / asked)
        assert validation.decisive == pytest.approx(validation.scores["accuracy"], abs=0.01)
    assert validation.samples == [Sample("a", "b", "c")]
    assert task.validate().scores == validation.scores


def test_of_equal_accuracy_the_smaller_loss_is_better(make: Make) -> None:
    task = make("classification")
    task.module.eval()
    before = task.validate()
    with torch.no_grad():
        task.module.projection.weight.mul_(0.5)  # the same is largest, but with less trust in it
    after = task.validate()
    assert before.scores["accuracy"] == after.scores["accuracy"]
    assert (before.decisive > after.decisive) == (before.scores["loss"] < after.scores["loss"])


def test_word_dropout_counts_in_training_only(make: Make) -> None:
    task = make("classification", {"word_dropout": 0.5})
    plain = make("classification")
    batch = first(task)
    assert abs(task.loss(batch).loss.item() - plain.loss(batch).loss.item()) > 1e-3
    for each in (task, plain):
        each.module.eval()
    assert torch.equal(task.loss(batch).loss, plain.loss(batch).loss)


def test_r_drop_adds_how_far_two_passes_are_apart(make: Make) -> None:
    task = make("classification")
    batch = first(task)

    def apart() -> float:
        with randomness(3):
            together = task.loss(batch, r_drop=1e-6).loss.item()
        with randomness(3):
            return task.loss(batch, r_drop=5.0).loss.item() - together

    assert apart() == pytest.approx(0, abs=1e-4)  # without dropout both passes are the same
    for each in task.module.modules():
        if isinstance(each, Dropout):
            each.probability = 0.3
    assert apart() > 0.1


@every_task
def test_a_few_steps_lower_the_loss(make: Make, name: str) -> None:
    task = make(name)
    optimizer = torch.optim.Adam(task.module.parameters(), lr=0.01)
    batch, losses = first(task), []
    for _ in range(25):
        part = task.loss(batch)
        optimizer.zero_grad()
        (part.loss / part.tokens).backward()
        optimizer.step()
        losses.append(part.loss.item() / part.tokens)
    assert losses[-1] < 0.9 * losses[0]
