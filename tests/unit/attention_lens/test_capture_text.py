"""The lens on models that only read a text, or only write one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from transduce.attention_lens import AttentionMaps
from transduce.attention_lens.capture import capture_text
from transduce.errors import ConfigError, InputError
from transduce.model import TransformerConfig
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderConfig, EncoderOnly
from transduce.text import Tokenizer

LINES = ["We painted the house.", "They repaired the bicycles.", "Kofi understands the question."] * 3
TEXT = "They painted the bicycles."
BOS, EOS = 1, 2
SHAPE: dict[str, Any] = {"d_model": 24, "d_ff": 32, "heads": 3, "encoder_layers": 2, "decoder_layers": 2}
FEELINGS = ["glad", "sad", "neither"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(LINES, 330, tags=["<mask>"])


def encoder(tokenizer: Tokenizer, **shape: Any) -> EncoderOnly:
    torch.manual_seed(1)
    return EncoderOnly(EncoderConfig.tiny(tokenizer.size, **SHAPE | shape)).eval()


def writer(tokenizer: Tokenizer, **shape: Any) -> LanguageModel:
    torch.manual_seed(2)
    return LanguageModel(TransformerConfig.tiny(tokenizer.size, **SHAPE | shape)).eval()


def in_order(probabilities: torch.Tensor) -> list[int]:
    return sorted(range(len(probabilities)), key=lambda place: -float(probabilities[place]))


def test_what_a_reader_looks_at_is_the_plain_record(tokenizer: Tokenizer) -> None:
    model, ids = encoder(tokenizer), [*tokenizer.encode(TEXT), EOS]
    maps = capture_text(model, tokenizer, ids, name="reader", language="en")
    with torch.inference_mode():
        _, record = model.with_attention(torch.tensor([ids]))
    np.testing.assert_array_equal(maps.encoder, torch.stack(record.encoder)[:, 0].numpy())
    np.testing.assert_allclose(maps.encoder.sum(-1), 1, atol=1e-5)
    assert (maps.model, maps.source_language, maps.text, maps.title) == ("reader", "en", TEXT, TEXT)


def test_there_are_encoder_maps_and_no_others(tokenizer: Tokenizer) -> None:
    maps = capture_text(encoder(tokenizer), tokenizer, [*tokenizer.encode(TEXT), EOS])
    assert maps.kinds == list(maps.words()) == list(maps.as_json()["maps"]) == ["encoder"]
    assert (len(maps.decoder), len(maps.cross), maps.steps, maps.target.tokens) == (0, 0, [], [])
    assert maps.at("words", "encoder").rows == [*TEXT.split(), "end"]
    with pytest.raises(ConfigError, match=r"the model has no cross attention\. It has: encoder\."):
        maps.at("words", "cross")


def test_each_mask_has_what_the_model_would_fill_in(tokenizer: Tokenizer) -> None:
    mask = tokenizer.tag("<mask>")
    ids = [*tokenizer.encode("They painted"), mask, *tokenizer.encode("the"), mask, EOS]
    model = encoder(tokenizer)
    maps = capture_text(model, tokenizer, ids)
    places = [place for place, token in enumerate(ids) if token == mask]
    assert [(guess.what, guess.place) for guess in maps.guesses] == [("mask", place) for place in places]
    with torch.inference_mode():
        probabilities = model(torch.tensor([ids]))[0].softmax(-1)
    special = {"<pad>", "<s>", "</s>", "<unk>", "<mask>"}
    for guess in maps.guesses:
        assert guess.place is not None
        ranked = in_order(probabilities[guess.place])
        best = [token for token in ranked if tokenizer.pieces([token])[0] not in special][:5]
        assert [one.token for one in guess.alternatives] == tokenizer.pieces(best)
        assert guess.alternatives[0].probability == pytest.approx(float(probabilities[guess.place, best[0]]))
    assert maps.title == "They painted [MASK] the [MASK]"
    assert [word.text for word in maps.source.words] == ["They", "painted", "<mask>", "the", "<mask>", "end"]


def test_a_text_without_masks_has_nothing_to_fill_in(tokenizer: Tokenizer) -> None:
    assert capture_text(encoder(tokenizer), tokenizer, [*tokenizer.encode(TEXT), EOS]).guesses == []


def test_a_classifier_says_its_labels_of_the_whole(tokenizer: Tokenizer) -> None:
    model, ids = encoder(tokenizer, head="sentence", labels=3), [*tokenizer.encode(TEXT), EOS]
    (guess,) = capture_text(model, tokenizer, ids, FEELINGS).guesses
    with torch.inference_mode():
        probabilities = model(torch.tensor([ids]))[0, 0].softmax(-1)
    assert (guess.what, guess.place) == ("label", None)
    assert [one.token for one in guess.alternatives] == [FEELINGS[place] for place in in_order(probabilities)]
    assert sum(one.probability for one in guess.alternatives) == pytest.approx(1, abs=1e-5)


def test_a_tagger_says_a_tag_of_each_word(tokenizer: Tokenizer) -> None:
    model, ids = encoder(tokenizer, head="token", labels=3), [*tokenizer.encode(TEXT), EOS]
    guesses = capture_text(model, tokenizer, ids, FEELINGS).guesses
    with torch.inference_mode():
        best = model(torch.tensor([ids]))[0].argmax(-1).tolist()
    words = tokenizer.encode_batch(TEXT.split())
    places = [sum(map(len, words[:number])) for number in range(len(words))]
    assert places != list(range(len(words)))
    assert [(guess.what, guess.place) for guess in guesses] == [("tag", place) for place in places]
    assert [guess.alternatives[0].token for guess in guesses] == [FEELINGS[best[place]] for place in places]


def test_labels_without_names_are_numbers_and_too_few_names_are_refused(tokenizer: Tokenizer) -> None:
    model, ids = encoder(tokenizer, head="sentence", labels=3), [*tokenizer.encode(TEXT), EOS]
    (guess,) = capture_text(model, tokenizer, ids).guesses
    assert sorted(one.token for one in guess.alternatives) == ["0", "1", "2"]
    with pytest.raises(InputError, match="tells 3 labels apart, and 2 have names"):
        capture_text(model, tokenizer, ids, FEELINGS[:2])


def test_a_text_longer_than_the_model_s_positions_is_refused(tokenizer: Tokenizer) -> None:
    model = encoder(tokenizer, positions="learned", max_length=4)
    with pytest.raises(InputError, match="the lens shows up to 4"):
        capture_text(model, tokenizer, [*tokenizer.encode(TEXT), EOS])


def test_looking_leaves_a_model_in_training_as_it_was(tokenizer: Tokenizer) -> None:
    model, ids = encoder(tokenizer, dropout=0.5), [*tokenizer.encode(TEXT), EOS]
    expected = capture_text(model, tokenizer, ids)
    again = capture_text(model.train(), tokenizer, ids)
    np.testing.assert_array_equal(again.encoder, expected.encoder)
    assert model.training


@pytest.fixture(scope="module")
def written(tokenizer: Tokenizer) -> AttentionMaps:
    return capture_text(writer(tokenizer), tokenizer, tokenizer.encode(TEXT), name="writer")


def test_what_a_writer_looks_at_is_the_plain_record(tokenizer: Tokenizer, written: AttentionMaps) -> None:
    read = [BOS, *tokenizer.encode(TEXT)[:-1]]
    with torch.inference_mode():
        _, record = writer(tokenizer).with_attention(torch.tensor([read]))
    np.testing.assert_allclose(written.decoder, torch.stack(record.decoder)[:, 0].numpy(), atol=1e-6)
    np.testing.assert_allclose(written.decoder.sum(-1), 1, atol=1e-5)


def test_there_are_decoder_maps_and_no_others(written: AttentionMaps) -> None:
    assert written.kinds == list(written.words()) == list(written.as_json()["maps"]) == ["decoder"]
    assert (written.text, written.title, written.source.tokens) == (TEXT, TEXT, [])
    found = written.at("words", "decoder")
    assert (found.rows, found.columns) == (TEXT.split(), ["start", *TEXT.split()])


def test_no_token_looks_ahead(written: AttentionMaps) -> None:
    rows, columns = np.triu_indices(written.decoder.shape[-1], k=1)
    assert len(rows) > 10
    assert not written.decoder[:, :, rows, columns].any()


def test_each_token_has_its_probability_and_the_last_a_successor(tokenizer: Tokenizer, written: AttentionMaps) -> None:
    ids = tokenizer.encode(TEXT)
    with torch.inference_mode():
        probabilities = writer(tokenizer)(torch.tensor([[BOS, *ids]]))[0].softmax(-1)
    expected = [float(probabilities[place, token]) for place, token in enumerate(ids)]
    assert [step.probability for step in written.steps] == pytest.approx(expected, rel=1e-4)
    assert [step.token for step in written.steps] == tokenizer.pieces(ids)
    for place, step in enumerate(written.steps):
        assert step.alternatives[0].token == tokenizer.pieces([in_order(probabilities[place])[0]])[0]
    (following,) = written.guesses
    assert (following.what, following.place) == ("next", None)
    best = tokenizer.pieces(in_order(probabilities[-1])[:5])
    assert [one.token for one in following.alternatives] == best


def test_after_the_end_and_beyond_the_model_s_positions_nothing_comes(tokenizer: Tokenizer) -> None:
    ids = tokenizer.encode(TEXT)
    assert capture_text(writer(tokenizer), tokenizer, [*ids, EOS]).guesses == []
    full = writer(tokenizer, positions="learned", max_length=len(ids))
    assert capture_text(full, tokenizer, ids).guesses == []
    with pytest.raises(InputError, match=f"the lens shows up to {len(ids)}"):
        capture_text(full, tokenizer, [*ids, EOS])
