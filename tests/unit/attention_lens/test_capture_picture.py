"""The lens on pictures."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from transduce.attention_lens import PictureMaps
from transduce.attention_lens.capture import capture_picture
from transduce.errors import InputError
from transduce.model.vision import VisionConfig, VisionTransformer
from transduce.text import Tokenizer
from transduce.training.tasks.examples import pixels

LINES = ["We painted the house.", "They repaired the bicycles.", "Kofi understands the question."] * 3
TEXT = "They painted the bicycles."
BOS, EOS = 1, 2
SHAPE: dict[str, Any] = {"d_model": 24, "d_ff": 32, "heads": 3, "encoder_layers": 2, "decoder_layers": 2}
FEELINGS = ["glad", "sad", "neither"]


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(LINES, 330, tags=["<mask>"])


def seer(**shape: Any) -> VisionTransformer:
    torch.manual_seed(3)
    size = {"vocab_size": 3, "height": 6, "width": 9, "patch": 3, "labels": 4}
    return VisionTransformer(VisionConfig.tiny(**size | SHAPE | shape)).eval()


def picture(channels: int = 1) -> np.ndarray[Any, Any]:
    return np.random.default_rng(4).integers(0, 256, (6, 9, channels), dtype=np.uint8)


def in_order(probabilities: torch.Tensor) -> list[int]:
    return sorted(range(len(probabilities)), key=lambda place: -float(probabilities[place]))


@pytest.fixture(scope="module")
def seen() -> PictureMaps:
    return capture_picture(seer(), picture(), ["cat", "dog", "cow", "fish"], name="seer", title="zoo:1")


@pytest.mark.parametrize("channels", [1, 3])
def test_the_weights_are_those_of_the_plain_record(channels: int) -> None:
    model, shown = seer(channels=channels), picture(channels)
    maps = capture_picture(model, shown)
    with torch.inference_mode():
        _, record = model.with_attention(pixels(shown[None]))  # as in training
    np.testing.assert_allclose(maps.encoder, torch.stack(record.encoder)[:, 0].numpy(), atol=1e-6)
    np.testing.assert_allclose(maps.encoder.sum(-1), 1, atol=1e-5)
    assert maps.encoder.shape == (2, 3, 7, 7)
    np.testing.assert_array_equal(maps.picture, shown if channels == 3 else shown[:, :, 0])


def test_patches_lie_as_in_the_picture(seen: PictureMaps) -> None:
    assert seen.grid == (2, 3)
    over = seen.over_picture()
    assert over.shape == (2, 3, 2, 3)
    assert seen.patches().rows == ["class", "1,1", "1,2", "1,3", "2,1", "2,2", "2,3"]
    assert over[1, 2, 1, 0] == seen.encoder[1, 2, 0, seen.patches().columns.index("2,1")]
    assert seen.over_picture(5)[0, 0, 0, 2] == seen.encoder[0, 0, 5, 3]


def test_labels_come_with_their_probabilities(seen: PictureMaps) -> None:
    scaled = torch.tensor(picture().tolist()).permute(2, 0, 1)[None] / 127.5 - 1
    with torch.inference_mode():
        probabilities = seer()(scaled)[0, 0].softmax(-1)
    (guess,) = seen.guesses
    names = ["cat", "dog", "cow", "fish"]
    assert [one.token for one in guess.alternatives] == [names[place] for place in in_order(probabilities)]
    expected = sorted(probabilities.tolist(), reverse=True)
    assert [one.probability for one in guess.alternatives] == pytest.approx(expected, abs=1e-5)


def test_json_says_everything_that_is_shown(seen: PictureMaps) -> None:
    found = seen.as_json()
    assert (found["model"], found["title"], found["grid"]) == ("seer", "zoo:1", [2, 3])
    assert found["picture"] == {"shape": [6, 9], "numbers": picture()[:, :, 0].tolist()}
    np.testing.assert_allclose(np.array(found["maps"]["encoder"]["numbers"]), seen.encoder, atol=1e-4)
    assert seen.as_json("bytes")["picture"]["shape"] == [6, 9]


def test_a_picture_of_another_size_is_refused() -> None:
    with pytest.raises(InputError, match=r"shape \[9, 6, 1\]; the model reads \[6, 9, 1\]"):
        capture_picture(seer(), picture().transpose(1, 0, 2))
