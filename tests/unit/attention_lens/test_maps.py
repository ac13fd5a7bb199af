"""Words, means and JSON of maps."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable

import numpy as np
import pytest

from transduce.attention_lens import AttentionMaps, Kind, Labels
from transduce.errors import ConfigError
from transduce.translator import Translator

KINDS: list[Kind] = ["cross", "encoder", "decoder"]


def sides(maps: AttentionMaps, kind: Kind) -> tuple[Labels, Labels]:
    rows = maps.source if kind == "encoder" else maps.target
    return rows, {"cross": maps.source, "encoder": maps.source, "decoder": maps.target.shifted()}[kind]


@pytest.mark.parametrize("kind", KINDS)
def test_a_word_is_the_mean_of_its_rows_and_the_sum_of_its_columns(maps: AttentionMaps, kind: Kind) -> None:
    rows, columns = sides(maps, kind)
    by_words = maps.words()[kind]
    tokens = getattr(maps, kind)
    assert any(word.last > word.first for word in rows.words)
    for y, row in enumerate(rows.words):
        for x, column in enumerate(columns.words):
            block = tokens[:, :, row.first : row.last + 1, column.first : column.last + 1]
            np.testing.assert_allclose(by_words.values[:, :, y, x], block.sum(-1).mean(-1), atol=1e-6)
    np.testing.assert_allclose(by_words.values.sum(-1), 1, atol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_rows_and_columns_are_labelled(maps: AttentionMaps, kind: Kind) -> None:
    rows, columns = sides(maps, kind)
    for level, found in (("subwords", maps.subwords()[kind]), ("words", maps.words()[kind])):
        assert found.values.shape[2:] == (len(found.rows), len(found.columns))
        assert found.rows == (rows.tokens if level == "subwords" else [word.text for word in rows.words])
        assert found.columns == (columns.tokens if level == "subwords" else [word.text for word in columns.words])


def test_means_over_layers_and_heads(maps: AttentionMaps) -> None:
    cross = maps.subwords()["cross"]
    np.testing.assert_allclose(cross.mean(), (maps.cross[0] + maps.cross[1]).sum(0) / 6, atol=1e-6)
    np.testing.assert_array_equal(cross.mean([2], [3]), maps.cross[1, 2])
    np.testing.assert_allclose(cross.mean([1], [1, 3]), (maps.cross[0, 0] + maps.cross[0, 2]) / 2, atol=1e-6)


@pytest.mark.parametrize(
    ("layers", "heads", "message"),
    [
        ([3], [], "no layer 3: layers are counted from 1 to 2. Did you mean 2?"),
        ([0], [], "no layer 0: layers are counted from 1 to 2. Did you mean 1?"),
        ([], [4], "no head 4: heads are counted from 1 to 3. Did you mean 3?"),
    ],
)
def test_a_layer_or_head_that_is_not_there(
    maps: AttentionMaps, layers: list[int], heads: list[int], message: str
) -> None:
    with pytest.raises(ConfigError) as raised:
        maps.words()["cross"].mean(layers, heads)
    assert message in str(raised.value)


def test_an_unknown_kind_level_or_encoding_is_answered_with_the_nearest(maps: AttentionMaps) -> None:
    with pytest.raises(ConfigError, match="Did you mean 'cross'"):
        maps.at("words", "cros")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Did you mean 'words'"):
        maps.at("word", "cross")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="Did you mean 'bytes'"):
        maps.as_json("byte")  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", KINDS)
def test_bytes_come_back_within_half_a_step(maps: AttentionMaps, kind: Kind) -> None:
    encoded = json.loads(json.dumps(maps.as_json("bytes")))["maps"][kind]
    values = np.frombuffer(base64.b64decode(encoded["bytes"]), dtype=np.uint8).reshape(encoded["shape"]) / 255
    np.testing.assert_allclose(values, getattr(maps, kind), atol=1 / 510 + 1e-6)


@pytest.mark.parametrize("kind", KINDS)
def test_numbers_come_back_to_four_digits(maps: AttentionMaps, kind: Kind) -> None:
    encoded = json.loads(json.dumps(maps.as_json("numbers")))["maps"][kind]
    np.testing.assert_allclose(np.array(encoded["numbers"]), getattr(maps, kind), atol=0.5e-4 + 1e-7)
    assert encoded["shape"] == list(getattr(maps, kind).shape)


def test_json_says_everything_that_is_shown(maps: AttentionMaps) -> None:
    found = json.loads(json.dumps(maps.as_json()))
    assert (found["model"], found["source_language"], found["target_language"]) == ("random", "en", "xx")
    assert found["source"]["text"] == "We repaired the station, Kofi."
    assert found["source"]["tokens"][-1] == "</s>"
    last = len(found["source"]["tokens"]) - 1
    assert found["source"]["words"][-1] == {"text": "end", "first": last, "last": last}
    assert [step["token"] for step in found["steps"]] == found["target"]["tokens"]
    assert set(found["steps"][0]["alternatives"][0]) == {"token", "probability"}


def test_a_model_without_encoder_layers_has_no_encoder_maps(make_translator: Callable[..., Translator]) -> None:
    maps = make_translator(encoder_layers=0).attention("We repaired it.", "بيتنا")
    assert maps.encoder.shape == (0, 3, len(maps.source.tokens), len(maps.source.tokens))
    assert len(maps.as_json()["maps"]["cross"]["numbers"]) == 2
    assert maps.kinds == list(maps.words()) == list(maps.subwords()) == ["cross", "decoder"]
    with pytest.raises(ConfigError, match=r"the model has no encoder attention\. It has: cross, decoder\."):
        maps.at("words", "encoder")
