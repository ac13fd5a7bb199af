"""Where batches come from: what is asked of each token, what randomness may change, and what it may not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from transduce.data.images import Pictures
from transduce.data.shards import Pairs
from transduce.errors import InputError
from transduce.model.vision import VisionConfig
from transduce.text import Tokenizer
from transduce.text.tokenizer import BOS, EOS, MASK, PAD
from transduce.training.recipe import Recipe
from transduce.training.tasks.examples import MaskedTexts, NamedTexts, PictureRows, Windows, pixels
from transduce.training.tasks.prediction import IGNORED, Examples, Labelled

Write = Callable[..., Pairs]


def recipe(task: str, **parts: dict[str, Any]) -> Recipe:
    training = {"batch_tokens": 200} | parts.pop("training", {})
    return Recipe.of({"task": task, "training": training, **parts})


def batches(examples: Examples, epoch: int = 0) -> list[Labelled]:
    return [examples.batch(row, (epoch, number)) for number, row in enumerate(examples.plan(epoch))]


def same(one: list[Labelled], other: list[Labelled]) -> bool:
    return len(one) == len(other) and all(
        torch.equal(mine, theirs)
        for left, right in zip(one, other, strict=True)
        for mine, theirs in zip(left, right, strict=True)
    )


# Masked texts


@pytest.fixture
def many(vocabulary: Tokenizer, write_pairs: Write) -> Pairs:
    """Random texts of 1 to 40 pieces, so that shares can be told."""
    generator = np.random.default_rng(3)
    first = max(vocabulary.unwritten) + 1
    rows = [generator.integers(first, vocabulary.size, generator.integers(1, 41)).tolist() for _ in range(1500)]
    return write_pairs(rows)


def originals(pairs: Pairs) -> Counter[tuple[int, ...]]:
    return Counter(tuple(pairs.ids("source", index).tolist()) for index in range(len(pairs)))


def asked_rows(examples: MaskedTexts, epoch: int = 0) -> list[tuple[list[int], list[int]]]:
    """What is read and what is asked of each text, without padding and end."""
    rows = []
    for inputs, labels in batches(examples, epoch):
        for ids, wanted in zip(inputs.tolist(), labels.tolist(), strict=True):
            end = ids.index(EOS)
            assert set(ids[end + 1 :]) <= {PAD}
            assert set(wanted[end:]) == {IGNORED}, "nothing is asked of the end and of padding"
            rows.append((ids[:end], wanted[:end]))
    return rows


def test_labels_stand_only_where_asked_and_spell_the_text(many: Pairs, vocabulary: Tokenizer) -> None:
    rows = asked_rows(MaskedTexts(many, recipe("masked-language-model"), vocabulary))
    restored = Counter(
        tuple(read if label == IGNORED else label for read, label in zip(*row, strict=True)) for row in rows
    )
    assert restored == originals(many)
    assert all(any(label != IGNORED for label in labels) for _, labels in rows), "at least one a text"


@pytest.mark.parametrize("share", [0.15, 0.5])
def test_of_what_is_asked_eight_in_ten_are_masked_one_is_another_and_one_stays(
    many: Pairs, vocabulary: Tokenizer, share: float
) -> None:
    rows = asked_rows(MaskedTexts(many, recipe("masked-language-model", objective={"masked": share}), vocabulary))
    places = [pair for ids, labels in rows for pair in zip(ids, labels, strict=True)]
    asked = [(read, label) for read, label in places if label != IGNORED]
    at_least_one = sum((1 - share) ** len(ids) for ids, _ in rows) / len(places)  # where chance alone would give none
    assert len(asked) / len(places) == pytest.approx(share + at_least_one, abs=0.05 * share + 0.02)
    masked = sum(read == vocabulary.tag(MASK) for read, _ in asked) / len(asked)
    kept = sum(read == label for read, label in asked) / len(asked)
    assert masked == pytest.approx(0.8, abs=0.02)
    assert kept == pytest.approx(0.1, abs=0.02)
    others = [read for read, label in asked if read not in (label, vocabulary.tag(MASK))]
    assert not set(others) & {PAD, BOS, EOS, *vocabulary.unwritten}, "another piece of text, never a special one"
    assert len(set(others)) > 50


def test_other_words_are_hidden_in_each_epoch_and_the_same_ones_for_the_same_seed(
    many: Pairs, vocabulary: Tokenizer
) -> None:
    def make(seed: int) -> MaskedTexts:
        return MaskedTexts(many, recipe("masked-language-model", training={"seed": seed}), vocabulary)

    assert same(batches(make(5), 2), batches(make(5), 2))
    assert not same(batches(make(5), 2), batches(make(6), 2))
    assert not same(batches(make(5), 2), batches(make(5), 3))


def test_on_the_dev_set_the_same_words_are_hidden_whatever_the_seed(many: Pairs, vocabulary: Tokenizer) -> None:
    found = []
    for seed in (5, 6):
        settings = recipe("masked-language-model", training={"seed": seed, "batch_tokens": 100 * seed})
        examples = MaskedTexts(many, settings, vocabulary, shuffle=False)
        found.append([examples.batch(row, None) for row in examples.plan(seed)])
    assert same(*found)


# Windows of a stream


@pytest.fixture
def stream(write_pairs: Write) -> Pairs:
    """The numbers from 4 on, in three documents."""
    return write_pairs([range(4, 104), range(104, 111), range(111, 204)])


def predicted(windows: Windows, epoch: int) -> list[int]:
    return [token for batch in batches(windows, epoch) for token in batch.labels.flatten().tolist() if token != PAD]


def test_each_token_is_predicted_from_those_before_it_in_its_window(stream: Pairs) -> None:
    for inputs, labels in batches(Windows(stream, recipe("language-model"), 16)):
        assert inputs.shape == labels.shape
        assert (inputs[:, 0] == BOS).all()
        assert torch.equal(inputs[:, 1:], labels[:, :-1])
        assert (labels.diff(dim=1) == 1).all(), "across documents, in their order"


def test_an_epoch_predicts_every_token_once_but_for_less_than_a_window_at_each_end(stream: Pairs) -> None:
    windows = Windows(stream, recipe("language-model"), 16)
    for epoch in range(6):
        found = predicted(windows, epoch)
        assert sorted(found) == list(range(min(found), max(found) + 1))
        assert min(found) - 4 < 16
        assert 203 - max(found) < 16


def test_over_epochs_windows_begin_elsewhere_and_come_in_another_order(stream: Pairs) -> None:
    windows = Windows(stream, recipe("language-model"), 16)
    starts = {min(predicted(windows, epoch)) for epoch in range(20)}
    assert len(starts) > 8
    assert predicted(windows, 0) != sorted(predicted(windows, 0))
    assert set(range(4, 204)) == {token for epoch in range(20) for token in predicted(windows, epoch)}


def test_windows_are_the_same_for_the_same_seed(stream: Pairs) -> None:
    def epoch(seed: int, number: int) -> list[int]:
        return predicted(Windows(stream, recipe("language-model", training={"seed": seed}), 16), number)

    assert epoch(5, 1) == epoch(5, 1)
    assert epoch(5, 1) != epoch(6, 1)
    assert epoch(5, 1) != epoch(5, 2)


@pytest.mark.parametrize("context", [2, 7, 16, 200, 300])
def test_on_the_dev_set_every_token_is_predicted_once_in_order(stream: Pairs, context: int) -> None:
    windows = Windows(stream, recipe("language-model"), context, shuffle=False)
    assert predicted(windows, 0) == predicted(windows, 1) == list(range(4, 204))
    assert all(batch.labels.numel() <= max(4000, context) for batch in batches(windows))


def test_a_text_shorter_than_the_window_is_one_window(write_pairs: Write) -> None:
    windows = Windows(write_pairs([[5, 6, 7]]), recipe("language-model"), 16)
    (batch,) = batches(windows)
    assert (batch.inputs.tolist(), batch.labels.tolist()) == ([[BOS, 5, 6]], [[5, 6, 7]])


def test_a_batch_holds_as_many_windows_as_it_has_tokens_for(stream: Pairs) -> None:
    sizes = [len(batch.inputs) for batch in batches(Windows(stream, recipe("language-model"), 16))]
    assert max(sizes) == 200 // 16


# Labels and tags


def test_a_text_comes_with_its_label_and_every_text_once_an_epoch(
    vocabulary: Tokenizer, lines: list[str], write_pairs: Write
) -> None:
    pairs = write_pairs(vocabulary.encode_batch(lines), [[number % 7] for number in range(len(lines))])
    examples = NamedTexts(pairs, recipe("classification"), vocabulary, "sentence")
    for epoch in (0, 1):
        found = Counter(
            (vocabulary.decode(ids), label)
            for inputs, labels in batches(examples, epoch)
            for ids, (label,) in zip(inputs.tolist(), labels.tolist(), strict=True)
        )
        assert found == Counter((line, number % 7) for number, line in enumerate(lines))
    assert not same(batches(examples, 0), batches(examples, 1))
    assert same(batches(examples, 1), batches(examples, 1))


def test_bpe_dropout_changes_the_cut_but_neither_text_nor_label(
    vocabulary: Tokenizer, lines: list[str], write_pairs: Write
) -> None:
    pairs = write_pairs(vocabulary.encode_batch(lines), [[number] for number in range(len(lines))])
    examples = NamedTexts(pairs, recipe("classification", tokenizer={"dropout": 0.3}), vocabulary, "sentence")
    changed = 0
    for inputs, labels in batches(examples):
        for ids, (label,) in zip(inputs.tolist(), labels.tolist(), strict=True):
            assert vocabulary.decode(ids) == lines[label]
            changed += [token for token in ids if token > EOS] != vocabulary.encode(lines[label])
    assert changed > 0.8 * len(lines)
    plain = NamedTexts(
        pairs, recipe("classification", tokenizer={"dropout": 0.3}), vocabulary, "sentence", shuffle=False
    )
    for row in plain.plan(0):
        inputs, labels = plain.batch(row, None)
        for ids, (label,) in zip(inputs.tolist(), labels.tolist(), strict=True):
            assert [token for token in ids if token > EOS] == vocabulary.encode(lines[label])


def test_tags_stand_at_their_pieces_and_nothing_is_asked_of_others(vocabulary: Tokenizer, write_pairs: Write) -> None:
    pairs = write_pairs([[10, 11, 12], [13]], [[1, 0, 3], [2]])
    (batch,) = batches(NamedTexts(pairs, recipe("tagging"), vocabulary, "token"))
    rows = sorted(zip(batch.inputs.tolist(), batch.labels.tolist(), strict=True))
    assert rows == [
        ([10, 11, 12, EOS], [0, IGNORED, 2, IGNORED]),
        ([13, EOS, PAD, PAD], [1, IGNORED, IGNORED, IGNORED]),
    ]


# Pictures


@pytest.fixture
def pictures() -> Pictures:
    images = np.arange(30 * 4 * 4 * 1).reshape(30, 4, 4, 1) % 256
    return Pictures(images.astype(np.uint8), np.arange(30))


CONFIG = VisionConfig.tiny(3, height=4, width=4, patch=2, labels=30)


def test_every_picture_comes_once_an_epoch_with_its_label_in_another_order(pictures: Pictures) -> None:
    rows = PictureRows(pictures, recipe("image-classification", training={"batch_tokens": 50}), CONFIG)
    orders = []
    for epoch in (0, 1):
        found = batches(rows, epoch)
        assert {len(batch.inputs) for batch in found} == {50 // 5}  # four patches and the class token
        orders.append([label for batch in found for label in batch.labels.flatten().tolist()])
        for inputs, labels in found:
            for picture, (label,) in zip(inputs, labels.tolist(), strict=True):
                assert torch.equal(picture, pixels(pictures.images[label : label + 1])[0])
    assert orders[0] != orders[1]
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(30))
    assert same(batches(rows, 1), batches(rows, 1))


def test_pixels_are_numbers_from_minus_one_to_one_with_channels_first() -> None:
    images = np.zeros((1, 2, 3, 2), dtype=np.uint8)
    images[0, 1, 2] = (255, 51)
    found = pixels(images)
    assert found.shape == (1, 2, 2, 3)
    assert found[0, :, 1, 2].tolist() == pytest.approx([1.0, -0.6])
    assert found.min() == -1
    with pytest.raises(InputError, match=r"pictures have shape \[2, 3\].*\[pictures, height, width, channels\]"):
        pixels(np.zeros((2, 3), dtype=np.uint8))
