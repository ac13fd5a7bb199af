"""Signs that look like a letter of the language are taken for it, wherever nothing else can be meant."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.text import Normalisation, Tokenizer, Vocabularies, normalise
from transduce.text.letters import letters_of

TWI = "ɔɛ"
TYPED = st.text(alphabet=st.sampled_from("abn kwεϵԑєɛԐЄƐͻↄᴐɔϽↃƆγυʋΣΕωж\u0301\u0303éέ3) \u200b\n"), max_size=30)


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("Mεda wo ase", "Mɛda wo ase"),  # Greek epsilon
        ("mϵ mԑ mє", "mɛ mɛ mɛ"),
        ("ԐyԐ Єno", "ƐyƐ Ɛno"),
        ("wͻ wↄ wᴐ ϽkͻↃ", "wɔ wɔ wɔ ƆkɔƆ"),
        ("NYεN", "NYɛN"),  # a small letter among capitals stays small: nothing is guessed
        ("έ", "ɛ\u0301"),  # with an accent, composed
        ("ε\u0301 ε\u0303", "ɛ\u0301 ɛ\u0303"),
        ("ɛnnɛ Ɔ", "ɛnnɛ Ɔ"),
        ("m3p3 ) E Ε Σ", "m3p3 ) E Ε Σ"),  # not surely meant
        ("Πλάτων ἐστίν λέγε", "Πλάτων ἐστίν λέγε"),  # Greek stays Greek
        ("моє ее", "моє ее"),  # and Cyrillic Cyrillic
        ("λεγε mε", "λεγε mɛ"),
    ],
)
def test_look_alikes_in_twi(typed: str, meant: str) -> None:
    assert normalise(typed, TWI) == unicodedata.normalize("NFC", meant)
    assert normalise(unicodedata.normalize("NFD", typed), TWI) == unicodedata.normalize("NFC", meant)


def test_without_letters_nothing_is_taken_for_another() -> None:
    assert normalise("Mεda wͻ") == "Mεda wͻ"


@given(TYPED)
def test_it_is_idempotent_and_changes_nothing_but_look_alikes(text: str) -> None:
    once = normalise(text, TWI)
    assert normalise(once, TWI) == once
    plain = normalise(text)
    if not set(unicodedata.normalize("NFD", plain)) & set("εϵԑєԐЄͻↄᴐϽↃ"):
        assert once == plain


@pytest.mark.parametrize(
    ("languages", "letters"),
    [(["twi"], "ɔɛ"), (["ak"], "ɔɛ"), (["Akan"], "ɔɛ"), (["en"], ""), ([None], ""), ([], ""), (["xx"], ""),
     (["ee"], "ɔɛɣʋ"), (["ee", "twi"], "ɔɛ"), (["twi", "el"], ""), (["twi", None], "")],
)  # fmt: skip
def test_the_letters_of_languages_are_those_that_all_of_them_write(languages: list[str | None], letters: str) -> None:
    assert set(letters_of(languages)) == set(letters)


@pytest.mark.parametrize(
    ("sources", "targets", "name"),
    [(["en"], ["de"], "nfc-1"), (["en"], ["twi"], "nfc-1+target:ɔɛ"), (["twi"], ["en"], "nfc-1+source:ɔɛ"),
     (["ee"], ["tw"], "nfc-1+source:ɔɛɣʋ+target:ɔɛ")],
)  # fmt: skip
def test_rules_are_known_by_a_name(sources: list[str | None], targets: list[str | None], name: str) -> None:
    rules = Normalisation.of(sources, targets)
    assert rules.name == name
    assert Normalisation.parse(name) == rules


@pytest.mark.parametrize("name", ["", "nfc-2", "nfc-1+", "nfc-1+twi", "nfc-1+target:", None, 1])
def test_a_name_that_is_not_known_gives_no_rules(name: object) -> None:
    assert Normalisation.parse(name) is None


def test_each_side_reads_by_its_own_rules_with_one_vocabulary() -> None:
    pairs = [("we eat bread today", "yɛdi paanoo ɛnnɛ"), ("they go home", "wɔkɔ fie")]
    learned = Vocabularies.learn(pairs, 400)
    twi = learned.with_rules(Normalisation(target=TWI))
    assert twi.shared
    assert list(twi.files()) == ["tokenizer.model"]
    assert twi.normalisation == Normalisation(target=TWI)
    assert twi.target.encode("yεdi") == learned.target.encode("yɛdi") != learned.target.encode("yεdi")
    assert twi.target.encode_batch(["yεdi"] * 9) == [learned.target.encode("yɛdi")] * 9
    assert twi.source.encode("yεdi") == learned.source.encode("yεdi")


def test_two_vocabularies_that_happen_to_be_equal_are_still_two() -> None:
    one, other = (Tokenizer.learn(["a b c", "b c d"], 300) for _ in range(2))
    assert one.model == other.model
    assert list(Vocabularies(one, other).files()) == ["source.model", "target.model"]
