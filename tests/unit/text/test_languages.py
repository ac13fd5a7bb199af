"""Languages are told by files' names and by what users write, and asked for by a tag."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.errors import ConfigError
from transduce.text.languages import Direction, language_code, language_of, same_language, tag_for


@pytest.mark.parametrize(
    ("text", "direction"),
    [("en-de", ("en", "de")), ("en-twi", ("en", "twi")), ("en-pt-BR", ("en", "pt-BR")), ("zh-sr_L", ("zh", "sr_L"))],
)
def test_a_direction_is_two_languages_with_a_hyphen(text: str, direction: tuple[str, str]) -> None:
    assert Direction.parse(text) == direction


@pytest.mark.parametrize("text", ["", "en", "en-", "-de", "en de", "en→de", "en-de ", "en-<2de>", "en--de"])
def test_what_is_no_direction_is_named(text: str) -> None:
    with pytest.raises(ConfigError, match=r"is not a direction\. Write two languages with a hyphen: en-de"):
        Direction.parse(text)


@pytest.mark.parametrize(
    ("name", "language"),
    [("train.de", "de"), ("data/train.twi.gz", "twi"), ("v1.2/train.lc.tok.fr.xz", "fr"), ("train.de.txt", "de"),
     ("train", None), ("train.txt", None), ("train.tsv", None), ("train.2016", None), ("train.english", None)],
)  # fmt: skip
def test_a_files_name_may_end_in_its_language(name: str, language: str | None) -> None:
    assert language_of(Path(name)) == language


def test_a_tag_says_into_what() -> None:
    assert tag_for("de") == "<2de>"


@pytest.mark.parametrize(
    ("name", "code"),
    [("twi", "twi"), ("tw", "twi"), ("ak", "twi"), ("AKA", "twi"), ("Akan", "twi"), ("Twi", "twi"), ("ger", "de"),
     ("deu", "de"), ("German", "de"), (" DE ", "de"), ("fra", "fr"), ("fre", "fr"), ("eng", "en"), ("ga", "ga"),
     ("pt-BR", "pt-BR"), ("xx", "xx"), ("", "")],
)  # fmt: skip
def test_a_language_has_several_names_and_one_code(name: str, code: str) -> None:
    assert language_code(name) == code


def test_a_language_is_found_among_codes_whatever_it_is_called() -> None:
    assert same_language("tw", ["de", "ak"]) == "ak"
    assert same_language("twi", ["ak", "twi"]) == "twi"
    assert same_language("fr", ["de", "ak"]) is None


def test_a_code_may_say_more_than_its_language() -> None:
    codes = ["eng_Latn", "zho_Hans", "zho_Hant", "twi_Latn"]
    assert same_language("en", codes) == "eng_Latn"
    assert same_language("ak", codes) == "twi_Latn"
    assert same_language("zho_Hant", codes) == "zho_Hant"
    assert same_language("zho", codes) is None  # which of the two is not said
