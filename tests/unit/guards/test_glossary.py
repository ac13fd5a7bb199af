"""Glossaries: what is read, what is found, and what is refused with file and line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from transduce.errors import InputError
from transduce.guards.glossary import Glossary, is_there
from transduce.guards.parts import find_parts


def found(glossary: Glossary, text: str) -> list[tuple[str, str]]:
    return [(text[part.start : part.end], part.filling) for part, _ in glossary.find(text, find_parts(text))]


def test_whole_words_are_found_in_any_case_and_the_longest_first() -> None:
    glossary = Glossary({"bank": "Bank", "bank account": "Girokonto", "C++": "C++"})
    assert found(glossary, "A bank  account at the Bank, banking.") == [
        ("bank  account", "Girokonto"),
        ("Bank", "Bank"),
    ]
    assert found(glossary, "BANK ACCOUNT!") == [("BANK ACCOUNT", "GIROKONTO")]
    assert found(glossary, "I write C++.") == [("C++", "C++")]


def test_capitals_inside_a_term_count() -> None:
    glossary = Glossary({"iPhone": "iPhone", "US": "USA"})
    assert found(glossary, "us and iphone, the US and an iPhone") == [("US", "USA"), ("iPhone", "iPhone")]


def test_nothing_is_found_in_addresses() -> None:
    assert found(Glossary({"example": "Beispiel"}), "An example: https://example.com") == [("example", "Beispiel")]


def test_a_file_has_comments_and_blank_lines(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# terms\n\ndog\tHund\r\n  cat \t Katze\n", encoding="utf-8")
    glossary = Glossary.read(path)
    assert len(glossary) == 2
    assert found(glossary, "cat, dog") == [("cat", "Katze"), ("dog", "Hund")]


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("dog\tHund\ncat", r"terms\.tsv:2: .*two columns, this one 1\. Write: source term, tab"),
        ("a\tb\tc", r"terms\.tsv:1: .*two columns, this one 3"),
        ("dog\tHund\n#\nDog\tKöter", r"terms\.tsv:3: the term 'Dog' has two targets. The first is in line 1."),
        ("dog\t ", r"terms\.tsv:1: the term '' has no words"),
        ("dog\t" + "x" * 101, r"terms\.tsv:1: the term 'x+…' is too long\. Use at most 100 characters"),
    ],
)
def test_mistakes_are_named_with_file_and_line(tmp_path: Path, lines: str, words: str) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text(lines, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        Glossary.read(path)


def test_a_term_is_there_as_whole_words_only() -> None:
    assert is_there("Hund", "Der Hund und die Hunde, ein hund") == 2


@pytest.mark.parametrize("terms", [[["a"]], [["a", "b", "c"]], {"a": 5}])
def test_entries_are_two_texts(terms: Any) -> None:
    with pytest.raises(InputError, match="not two texts"):
        Glossary(terms)


def test_of_entries_for_the_same_words_the_last_counts() -> None:
    assert found(Glossary({"Dog": "Köter", "dog": "Hund"}), "a dog") == [("dog", "Hund")]
