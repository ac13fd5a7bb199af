"""Subwords become words again, in any script."""

from __future__ import annotations

import pytest

from transduce.attention_lens.words import Labels, labels_of
from transduce.text import Tokenizer
from transduce.text.masked import encode_masked

EOS = 2
LINES = [
    "the house",
    "the houses of the station",
    "東京は大きい都市です",
    "東京の家",
    "ภาษาไทย",
    "قرأت كتابا جيدا",
    "हिन्दी पढ़ता",
] * 3


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(LINES, 330, tags=["<2de>"])


def labels(tokenizer: Tokenizer, text: str) -> Labels:
    return labels_of([*tokenizer.encode(text), EOS], tokenizer)


@pytest.mark.parametrize("text", ["the houses of the station", "قرأت كتابا جيدا", "हिन्दी पढ़ता", "thé 👍 ɛno"])
def test_words_are_those_between_spaces_whole_again(tokenizer: Tokenizer, text: str) -> None:
    found = labels(tokenizer, text)
    assert [word.text for word in found.words] == [*text.split(), "end"]
    assert found.text == text


@pytest.mark.parametrize("text", [*LINES[:7], "thé 👍 ɛno", "x"])
def test_every_token_belongs_to_one_word(tokenizer: Tokenizer, text: str) -> None:
    found = labels(tokenizer, text)
    places = [place for word in found.words for place in range(word.first, word.last + 1)]
    assert places == list(range(len(found.tokens)))


def test_bytes_belong_to_their_word(tokenizer: Tokenizer) -> None:
    found = labels(tokenizer, "the 👍")
    (thumb,) = [word for word in found.words if word.text == "👍"]
    assert found.tokens[thumb.last] == "<0x8D>"
    assert thumb.last - thumb.first >= 3


def test_without_spaces_pieces_are_words_and_marks_stay_with_what_they_mark(tokenizer: Tokenizer) -> None:
    found = labels(tokenizer, "東京は大きい都市です")
    assert len(found.words) > 2
    assert "".join(word.text for word in found.words[:-1]) == "東京は大きい都市です"
    for word in labels(tokenizer, "ภาษาไทยที่นี่").words:
        assert word.text[0] not in "\u0e31\u0e34\u0e35\u0e36\u0e37\u0e38\u0e39\u0e48\u0e49"


def test_tags_and_the_end_are_words_of_their_own(tokenizer: Tokenizer) -> None:
    tag = tokenizer.tag("<2de>")
    found = labels_of([tag, *tokenizer.encode("the house"), EOS], tokenizer)
    assert [word.text for word in found.words] == ["<2de>", "the", "house", "end"]
    assert found.text == "the house"


def test_the_decoder_has_read_the_start_and_all_but_the_last(tokenizer: Tokenizer) -> None:
    found = labels(tokenizer, "the houses")
    read = found.shifted()
    assert read.tokens == ["<s>", *found.tokens[:-1]]
    assert [word.text for word in read.words] == ["start", "the", "houses"]
    assert [(word.first, word.last) for word in read.words[1:]] == [
        (word.first + 1, word.last + 1) for word in found.words[:-1]
    ]


def test_a_word_that_is_still_being_written_has_been_read_in_part(tokenizer: Tokenizer) -> None:
    found = labels_of(tokenizer.encode("the zzz"), tokenizer)
    read = found.shifted()
    assert len(read.tokens) == len(found.tokens)
    assert read.words[-1].last == len(read.tokens) - 1


def test_symbols_of_a_tree_and_line_ends_are_words_of_their_own() -> None:
    symbols = ["*1", "*2", "(S", ")S"]
    trees = Tokenizer.learn(["*1 the*2 house", "(S*1*2)S"] * 5, 330, protected=symbols)
    assert [word.text for word in labels(trees, "*1 the*2 house").words] == ["*1", "the", "*2", "house", "end"]
    assert [word.text for word in labels(trees, "(S*1*2)S").words] == ["(S", "*1", "*2", ")S", "end"]
    documents = Tokenizer.learn(["the house\nof the station"] * 5, 330, documents=True)
    found = labels_of(documents.encode_document("the house\n\nof"), documents)
    assert [word.text for word in found.words] == ["the", "house", "↵", "↵", "of"]
    assert found.text == "the house\n\nof"


def test_a_mask_is_in_the_text_as_people_write_it() -> None:
    masked = Tokenizer.learn([*LINES, "the house."], 330, tags=["<mask>"])
    for text in ("the [MASK] of the station", "[MASK] [MASK]", "the house."):
        found = labels_of([*encode_masked(masked, text), EOS], masked)
        assert found.text == text
    stopped = encode_masked(masked, "the [MASK].")
    assert masked.pieces(stopped)[-2:] == ["<mask>", "."]
