"""Cutting a text loses nothing of it, and cuts where sentences end."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.text.sentences import segments

SENTENCES = [
    "Dr. Mensah came to Kumasi in 1957, when the streets were still quiet.",
    "Who would have thought that she would stay there for the rest of her life?",
    "She paid 3.50 for the room, and the landlord gave her a key!",
    "“It is yours,” he said.",
    "Nobody has asked for it since.",
]
ODD_SPACES = " \t\n\r\x0b\x0c\x1c\x85\u00a0\u1680\u2003\u2028\u2029\u202f\u3000\ufeff\u200b"
PIECES = [
    *ODD_SPACES, *".!?,;:…\"'()[]“”„«»¿¡。！？।؟", "...", "\r\n", "\n\n", "Mr. ", "z. B. ", "A. ", "1. ", "3.5", "a",
    "Word", "www.a.org", "e\u0301", "ɛno", "日本語", "これは文です。", "नमस्ते।", "مرحبا؟", "สวัสดี", "👍🏽", "\0", "\x7f",
]  # fmt: skip

texts = st.one_of(st.lists(st.sampled_from(PIECES), max_size=60).map("".join), st.text(max_size=300))
languages = st.sampled_from([None, "en", "de", "fr", "ja", "zh", "ar", "hi", "tw", "xx", ""])


@settings(max_examples=300, deadline=None)
@given(texts, languages)
def test_joined_segments_are_the_text(text: str, language: str | None) -> None:
    parts = segments(text, language)
    assert "".join(part.sentence + part.space for part in parts) == text
    assert all(part.sentence == part.sentence.strip() for part in parts)
    assert all(part.space.strip() == "" for part in parts)


@pytest.mark.parametrize("space", [" ", "  ", "\n", "\n\n", " \t "])
def test_a_paragraph_is_cut_at_its_sentences(space: str) -> None:
    parts = segments(space.join(SENTENCES), "en")
    assert [part.sentence for part in parts] == SENTENCES
    assert [part.space for part in parts] == [space] * 4 + [""]


def test_a_short_text_is_cut_too() -> None:
    assert segments("I came. I saw, too. I won!") == [("I came.", " "), ("I saw, too.", " "), ("I won!", "")]
    assert segments("Mr. Owusu paid 3.50 a day.") == [("Mr. Owusu paid 3.50 a day.", "")]


def test_white_space_at_the_ends_is_kept_apart() -> None:
    assert segments("  Hello.\n") == [("", "  "), ("Hello.", "\n")]
    assert segments(" \n\u3000") == [("", " \n\u3000")]


def test_an_empty_text_has_no_segments() -> None:
    assert segments("") == []


def test_repeated_sentences_are_each_found() -> None:
    parts = segments("No.  No, no. No. " * 20)
    assert "".join(part.sentence + part.space for part in parts) == "No.  No, no. No. " * 20
    assert len(parts) == 60


def test_a_script_without_spaces_is_cut_too() -> None:
    sentences = ["今朝は電車が来なかったので学校に遅れました。", "先生は何も言いませんでした。"] * 8
    assert [part.sentence for part in segments("".join(sentences), "ja")] == sentences


def test_a_language_that_is_not_known_is_cut_like_english() -> None:
    assert [part.sentence for part in segments(" ".join(SENTENCES), "xx")] == SENTENCES
