"""Lines to translate in bulk, and what one process makes of them at once."""

from __future__ import annotations

from itertools import islice
from pathlib import Path

import pytest

from transduce.bundle import Bundle, find_model
from transduce.data.builtin import builtin_corpus
from transduce.translator import Translator

LINES = 300


@pytest.fixture(scope="session")
def bundle() -> Bundle:
    return Bundle.open(find_model("en-de"))


@pytest.fixture(scope="session")
def lines() -> list[str]:
    """Sentences, no two alike, with blank lines among them."""
    found = dict.fromkeys(pair.source for pair in islice(builtin_corpus("tatoeba-en-de").pairs(), 5 * LINES))
    return ["" if number % 97 == 5 else line for number, line in enumerate(islice(found, LINES))]


@pytest.fixture(scope="session")
def expected(bundle: Bundle, lines: list[str]) -> list[str]:
    return [each.text for each in Translator(bundle).translate(lines, beam=1)]


@pytest.fixture
def text(tmp_path: Path, lines: list[str]) -> Path:
    path = tmp_path / "big.txt"
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path
