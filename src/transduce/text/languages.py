"""Languages by name: from which into which, as files and users say it, and the tag that asks for one."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

from transduce.errors import ConfigError
from transduce.text.language_names import CODES, NAMES

__all__ = ["Direction", "language_code", "language_of", "same_language", "tag_for", "tagged_language"]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*(_[A-Za-z0-9]+)*")
TARGET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*")
NO_LANGUAGES = (".gz", ".xz", ".txt", ".tsv")
OTHER_CODES = {"ak": "twi", "aka": "twi", "tw": "twi", "eng": "en", "deu": "de", "ger": "de", "fra": "fr", "fre": "fr"}
"""Codes by which languages are known elsewhere, and ours."""


class Direction(NamedTuple):
    """From which language into which; None where nobody has said."""

    source: str | None = None
    target: str | None = None

    @classmethod
    def parse(cls, text: str) -> Direction:
        """Of a name such as "en-de", or "en-pt-BR": what stands before the first hyphen is the source."""
        source, _, target = text.partition("-")
        if not (NAME.fullmatch(source) and TARGET_NAME.fullmatch(target)):
            raise ConfigError(f"{text!r} is not a direction.", remedy="Write two languages with a hyphen: en-de.")
        return cls(source, target)


def language_of(path: Path) -> str | None:
    """A language code at the end of a file's name, as in train.de or train.de.gz."""
    suffixes = [suffix[1:] for suffix in path.suffixes if suffix not in NO_LANGUAGES]
    return suffixes[-1] if suffixes and suffixes[-1].isalpha() and 2 <= len(suffixes[-1]) <= 3 else None


def language_code(name: str) -> str:
    """Our code of a language that is called by another (ak, deu) or by its English name (German); else as it is."""
    word = name.strip().lower()
    code = word if word in NAMES or word in OTHER_CODES else CODES.get(word, name)  # ga is Irish, Ga is gaa
    return OTHER_CODES.get(code, code)


def same_language(name: str, codes: Iterable[str]) -> str | None:
    """Which of these codes means the language of this name; None if none does.

    A code may say more: fra_Latn is French, unless there is another script of it among them.
    """
    known = list(codes)
    if name in known:
        return name
    same = [code for code in known if language_code(code) == language_code(name)]
    written = [code for code in known if language_code(code.partition("_")[0]) == language_code(name)]
    return next(iter(same or (written if len(written) == 1 else [])), None)


def tag_for(language: str) -> str:
    """What stands before a source sentence that is to become this language."""
    return f"<2{language}>"


def tagged_language(tag: str) -> str | None:
    """The language that a tag asks for; None if it asks for none."""
    return tag[2:-1] if tag.startswith("<2") and tag.endswith(">") else None
