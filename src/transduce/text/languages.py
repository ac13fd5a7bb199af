"""Languages by name: from which into which, as files and users say it, and the tag that asks for one."""

from __future__ import annotations

import re
from pathlib import Path
from typing import NamedTuple

from transduce.errors import ConfigError

__all__ = ["Direction", "language_of", "tag_for"]

NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*")
TARGET_NAME = re.compile(r"[A-Za-z][A-Za-z0-9]*([-_][A-Za-z0-9]+)*")
NO_LANGUAGES = (".gz", ".xz", ".txt", ".tsv")


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


def tag_for(language: str) -> str:
    """What stands before a source sentence that is to become this language."""
    return f"<2{language}>"
