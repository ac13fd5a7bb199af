"""Texts, words, pictures and masked words are named: each by itself, whatever else is in the batch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

from transduce import classifier as classifier_module
from transduce.bundle import Bundle
from transduce.classifier import Classifier, Filler, Guess
from transduce.errors import BundleError, InputError
from transduce.text import Tokenizer
from transduce.text.tokenizer import EOS, MASK

LINES = [f"{subject} {verb} the {thing}." for subject in ("We", "They", "Kofi and Ama")
         for verb in ("painted", "understand", "repaired") for thing in ("house", "bicycles", "question")]  # fmt: skip
TEXTS = ["We painted the house.", "They", "Kofi and Ama repaired the bicycles, and they understand.", "ɛno 👍"] * 3
LABELS = ["cold", "warm", "hot"]


@pytest.fixture(scope="module")
def vocabulary() -> Tokenizer:
    return Tokenizer.learn(LINES, 320, tags=[MASK])


def louder(module: Any) -> None:
    """So that different texts get clearly different answers."""
    with torch.no_grad():
        module.projection.weight.mul_(8)


@pytest.fixture(scope="module")
def namer(write_model: Callable[..., Bundle], vocabulary: Tokenizer) -> Classifier:
    torch.manual_seed(1)
    shape = {"head": "sentence", "change": louder}
    return Classifier(write_model("encoder-only", "classification", vocabulary, LABELS, **shape))


@pytest.fixture(scope="module")
def tagger(write_model: Callable[..., Bundle], vocabulary: Tokenizer) -> Classifier:
    torch.manual_seed(1)
    shape = {"head": "token", "change": louder}
    return Classifier(write_model("encoder-only", "tagging", vocabulary, LABELS, **shape))


@pytest.fixture(scope="module")
def watcher(write_model: Callable[..., Bundle]) -> Classifier:
    torch.manual_seed(1)
    shape = {"height": 4, "width": 6, "channels": 1, "patch": 2, "change": louder}
    return Classifier(write_model("vision", "image-classification", None, LABELS, **shape))


@pytest.fixture(scope="module")
def filler(write_model: Callable[..., Bundle], vocabulary: Tokenizer) -> Filler:
    torch.manual_seed(1)
    return Filler(write_model("encoder-only", "masked-language-model", vocabulary, change=louder))


@pytest.fixture(autouse=True)
def _few_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(classifier_module, "AT_ONCE", 5)


def close(one: list[Guess], other: list[Guess]) -> bool:
    return [each.label for each in one] == [each.label for each in other] and [
        each.probability for each in one
    ] == pytest.approx([each.probability for each in other], abs=1e-5)


# Texts


def test_a_text_is_named_the_same_alone_and_in_any_batch(namer: Classifier) -> None:
    together = namer.classify(TEXTS)
    assert all(close(guesses, namer.classify([text])[0]) for text, guesses in zip(TEXTS, together, strict=True))
    assert len({guesses[0].label for guesses in together}) > 1  # or it could not have told


def test_guesses_are_the_models_probabilities_best_first(namer: Classifier, vocabulary: Tokenizer) -> None:
    with torch.inference_mode():
        expected = namer.model(torch.tensor([[*vocabulary.encode(TEXTS[0]), EOS]]))[0, 0].softmax(-1).tolist()
    (guesses,) = namer.classify(TEXTS[:1])
    assert {each.label: each.probability for each in guesses} == pytest.approx(dict(zip(LABELS, expected, strict=True)))
    assert [each.probability for each in guesses] == sorted(expected, reverse=True)
    assert [len(namer.classify(TEXTS[:1], best)[0]) for best in (1, 2, 99)] == [1, 2, 3]


def test_no_texts_have_no_names(namer: Classifier, tagger: Classifier) -> None:
    assert namer.classify([]) == tagger.tag([]) == []


def test_a_text_longer_than_learned_positions_is_named_by_its_beginning(
    write_model: Callable[..., Bundle], vocabulary: Tokenizer
) -> None:
    shape = {"head": "sentence", "positions": "learned", "max_length": 6}
    short = Classifier(write_model("encoder-only", "classification", vocabulary, LABELS, **shape))
    assert close(short.classify(["We painted the house " * 9])[0], short.classify(["We painted the house " * 90])[0])


# Words


def test_each_word_has_the_tag_of_its_first_piece(tagger: Classifier, vocabulary: Tokenizer) -> None:
    for text, tagged in zip(TEXTS, tagger.tag(TEXTS), strict=True):
        words = text.split()
        assert [each.word for each in tagged] == words
        pieces = [vocabulary.encode(word) for word in words]
        ids = [token for word in pieces for token in word]
        with torch.inference_mode():
            values = tagger.model(torch.tensor([[*ids, EOS]]))[0].softmax(-1)
        place = 0
        for each, word in zip(tagged, pieces, strict=True):
            assert each.tag == LABELS[int(values[place].argmax())]
            assert each.probability == pytest.approx(float(values[place].max()), abs=1e-5)
            place += len(word)


def test_a_text_without_words_has_no_tags(tagger: Classifier) -> None:
    assert [len(each) for each in tagger.tag(["We painted", "", "  "])] == [2, 0, 0]


# Pictures


def test_a_picture_is_named_the_same_alone_and_in_any_batch(watcher: Classifier) -> None:
    images = np.random.default_rng(2).integers(0, 256, (12, 4, 6, 1)).astype(np.uint8)
    together = watcher.classify_pictures(images)
    for number, guesses in enumerate(together):
        assert close(guesses, watcher.classify_pictures(images[number : number + 1])[0])
    assert len({guesses[0].label for guesses in together}) > 1
    assert sum(each.probability for each in together[0]) == pytest.approx(1)


def test_pictures_of_another_size_are_refused(watcher: Classifier) -> None:
    with pytest.raises(InputError, match=r"pictures have shape \[1, 1, 6, 4\]\. Give a batch \[pictures, 1, 4, 6\]"):
        watcher.classify_pictures(np.zeros((1, 6, 4, 1), dtype=np.uint8))


# Masked words


def test_each_mask_gets_guesses_that_are_text(filler: Filler, vocabulary: Tokenizer) -> None:
    guesses = filler.fill("We [MASK] the [MASK].", best=400)
    assert len(guesses) == 2
    pieces = vocabulary.all_pieces()
    ids = [*(pieces.index(piece) for piece in ("▁We", MASK, "▁the", MASK, ".")), EOS]
    with torch.inference_mode():
        values = filler.model(torch.tensor([ids]))[0].softmax(-1)
    for mask, place in zip(
        guesses, [place for place, token in enumerate(ids) if token == vocabulary.tag(MASK)], strict=True
    ):
        allowed = values[place].clone()
        allowed[[*vocabulary.unwritten, EOS]] = 0
        best = int(allowed.argmax())
        assert mask[0].label == vocabulary.pieces([best])[0].replace("▁", " ")
        assert mask[0].probability == pytest.approx(float(values[place, best]), abs=1e-5)
        assert [each.probability for each in mask] == sorted((each.probability for each in mask), reverse=True)
        likely = {each.label for each in mask if each.probability > 0}
        assert not likely & {"<pad>", "<s>", "</s>", "<unk>", MASK}


def test_the_filled_text_has_the_best_guesses_in_place_of_the_masks(filler: Filler) -> None:
    text = "We [MASK] the house."
    (guesses,) = filler.fill(text, best=1)
    filled = filler.filled(text)
    assert filled == f"We{guesses[0].label} the house." or "<0x" in guesses[0].label
    assert "[MASK]" not in filler.filled("[MASK][MASK] [MASK]")


def test_a_text_with_nothing_masked_is_refused(filler: Filler) -> None:
    with pytest.raises(InputError, match=r"nothing is masked\. Write \[MASK\]"):
        filler.fill("We painted the house.")


# Other models


def test_a_model_of_another_kind_is_answered_with_its_command(
    namer: Classifier, tagger: Classifier, watcher: Classifier, filler: Filler
) -> None:
    with pytest.raises(BundleError, match=r"task is masked-language-model, not .*Use: transduce fill"):
        Classifier.load(filler.bundle.path)
    with pytest.raises(
        BundleError, match=r"task is classification, not masked-language-model\. Use: transduce classify"
    ):
        Filler.load(namer.bundle.path)
    with pytest.raises(BundleError, match="task is tagging, not classification"):
        tagger.classify(["We"])
    with pytest.raises(BundleError, match="task is classification, not tagging"):
        namer.tag(["We"])
    with pytest.raises(BundleError, match="task is image-classification, not classification"):
        watcher.classify(["We"])
    with pytest.raises(BundleError, match="task is tagging, not image-classification"):
        tagger.classify_pictures(np.zeros((1, 4, 6, 1), dtype=np.uint8))
    with pytest.raises(BundleError, match="reads pictures and has no vocabulary"):
        watcher.bundle.vocabularies()
