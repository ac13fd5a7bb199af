"""Languages are told apart, among all or among some."""

from __future__ import annotations

import pytest

from transduce.serve.detection import detect, detect_among

SENTENCES = {
    "de": "Wo ist denn hier der nächste Bahnhof?",
    "en": "Where would I find the nearest station?",
    "fr": "Où se trouve la gare la plus proche ?",
}


@pytest.mark.parametrize("language", SENTENCES)
def test_plain_sentences_are_recognised(language: str) -> None:
    guesses = detect(SENTENCES[language])
    assert guesses[0].language == language
    assert 50 < guesses[0].confidence <= 100
    assert [guess.confidence for guess in guesses] == sorted((guess.confidence for guess in guesses), reverse=True)


@pytest.mark.parametrize("text", ["", "  ", "123 ...", "👍"])
def test_nothing_can_be_told_of_a_text_without_letters(text: str) -> None:
    assert detect(text) == []
    assert detect_among(text, ["tw", "en"]) == ("tw", 0.0)


def test_among_some_the_likeliest_wins_even_if_another_would() -> None:
    assert detect_among(SENTENCES["fr"], ["de", "fr"]).language == "fr"
    assert detect_among(SENTENCES["de"], ["tw", "de"]).language == "de"
    only = detect_among(SENTENCES["de"], ["en"])
    assert only.language == "en"
    assert only.confidence < 20


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("Ɛhe na wokɔ?", "twi"),
        ("Me din de Kofi na mefiri Ghana.", "twi"),
        ("Where are you going?", "en"),
        ("Nein.", "de"),
    ],
)
def test_a_language_that_the_detector_has_not_learned_is_told_by_its_letters_or_by_being_unlike_the_others(
    text: str, language: str
) -> None:
    guess = detect_among(text, ["en", "de", "twi"])
    assert guess.language == language
    assert 0 < guess.confidence <= 100
