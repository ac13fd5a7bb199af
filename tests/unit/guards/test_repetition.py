"""Loops are found and cut; what the source says again may be said again."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.guards.repetition import Repetition, may_repeat

PLAIN = "The dog sees the old house."


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("der Hund der Hund der Hund sieht", True),
        ("ja ja ja ja", True),
        ("ja, ja. ja! ja", True),
        ("er sah das alte Haus er sah das alte Haus", True),
        ("Die, die die Stadt kennen, die kennen sie.", False),
        ("Es ist gut, dass es gut ist.", False),
        ("dadadadadadadada", True),
        ("日本語日本語日本語日本語日本語日本語", True),
        ("Das ist ......", True),
        ("wie gut es ist und wie gut es war oder wie gut es wird und wie gut es bleibt", True),
        ("", False),
    ],
)
def test_what_the_source_says_once_is_not_said_again_and_again(text: str, found: bool) -> None:
    assert Repetition(PLAIN).is_in(text) is found


@pytest.mark.parametrize(
    ("source", "text"),
    [
        ("no no no no no no", "nein nein nein nein nein nein"),
        ("the dog the dog the dog", "der Hund der Hund der Hund"),
        ("hahahahahaha", "hahahahahaha"),
        ("1 2 1 1 2 1 1", "1 1 1 1 1 2 2"),
        ("wait ......", "warte ......"),
    ],
)
def test_what_the_source_says_again_may_be_said_as_often(source: str, text: str) -> None:
    assert not Repetition(source).is_in(text)
    assert Repetition(source).is_in(" ".join([text] * 8))


def test_a_loop_is_cut_and_the_rest_stays() -> None:
    assert Repetition(PLAIN).cut("ja ja ja ja ja ja doch") == "ja ja ja doch"
    assert Repetition(PLAIN).cut("Der Hund, der Hund, der Hund, der Hund") == "Der Hund, der Hund"


@given(st.lists(st.sampled_from(["ja", "nein", "da", "oh,", "a", "…", "Hund."]), max_size=40))
def test_what_is_cut_is_clean_and_not_gone(words: list[str]) -> None:
    text = " ".join(words)
    cut = Repetition(PLAIN).cut(text)
    assert not Repetition(PLAIN).is_in(cut)
    assert bool(cut) == bool(text)
    assert len(cut) <= len(text)


def test_most_sentences_need_no_closer_look() -> None:
    assert not may_repeat([5, 6, 7, 5, 8, 6, 9])
    assert may_repeat([5, 5, 5, 5])


def test_a_word_three_times_is_no_reason_to_say_a_phrase_three_times() -> None:
    source = "the dog runs runs runs to my teacher"
    assert Repetition(source).is_in("der Hund mit dem Lehrer mit dem Lehrer mit dem Lehrer")
    assert not Repetition(source).is_in("der Hund rennt rennt rennt zu meinem Lehrer")
