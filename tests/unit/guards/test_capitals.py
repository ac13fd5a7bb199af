"""Texts in capitals are read in small letters, where the model has learned from those."""

from __future__ import annotations

import pytest

from transduce import Translator
from transduce.guards.capitals import in_capitals, in_small_letters, is_better_small
from transduce.text import Tokenizer


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load("en-de")


def test_a_sentence_in_capitals_is_translated_as_its_small_letters_are(translator: Translator) -> None:
    small = translator.translate("Where is the station?").text
    assert translator.translate("WHERE IS THE STATION?").text == small.upper()


def test_what_must_survive_is_not_put_into_capitals(translator: Translator) -> None:
    written = translator.translate("PLEASE WRITE TO anna@example.org TODAY.").text
    assert "anna@example.org" in written
    assert written.replace("anna@example.org", "").isupper()


def test_only_the_sentence_that_is_in_capitals_is_written_so(translator: Translator) -> None:
    loud, quiet = (translator.translate(text).text for text in ("WHERE IS THE STATION?", "I am hungry."))
    assert translator.translate("WHERE IS THE STATION? I am hungry.").text == f"{loud} {quiet}"


def test_raw_is_raw(translator: Translator) -> None:
    assert (
        translator.translate("WHERE IS THE STATION?", guard=False).text
        != translator.translate("Where is the station?").text
    )


@pytest.mark.parametrize("text", ["Where is it?", "where is it?", "USA", "123 !", ""])
def test_what_is_not_in_capitals_stays_as_it_is(translator: Translator, text: str) -> None:
    assert not is_better_small(text, translator.vocabularies.source)


def test_a_vocabulary_of_capitals_reads_capitals() -> None:
    loud = Tokenizer.learn(["WHERE IS THE STATION", "THE STATION IS HERE", "IS IT HERE"] * 30, 320)
    assert not is_better_small("WHERE IS THE STATION", loud)


def test_letters_change_one_by_one() -> None:
    assert in_small_letters("“İSTANBUL IST GROSS”") == "“İstanbul ist gross”"
    assert in_small_letters("3 KG ÄPFEL") == "3 Kg äpfel"
    assert in_capitals("Die Straße: <b>hier</b>", ["<b>", "</b>"]) == "DIE STRASSE: <b>HIER</b>"


def test_what_is_kept_is_not_looked_for_inside_other_words(translator: Translator) -> None:
    assert translator.translate("THE <keep>e</keep> IS HERE.").text.count("e") == 1
