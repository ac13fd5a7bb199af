"""Parallel text, read as a stream: one pass, one line of each side in memory at a time.

Plain text, gzip and xz are told apart by their first bytes, whatever the file is called. Lines end at a line feed and
nowhere else, so that no stray separator can shift one side against the other.
"""

from __future__ import annotations

import codecs
import difflib
import gzip
import lzma
import os
import re
import zlib
from collections.abc import Generator, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import IO, NamedTuple

from transduce.errors import ConfigError, InputError
from transduce.text.languages import Direction, language_of

__all__ = ["Corpus", "Pair", "is_tsv", "read_lines"]

GZIP = b"\x1f\x8b"
XZ = b"\xfd7zXZ\x00"
UNREAD = {b"PK\x03\x04": "a zip archive", b"BZh91AY&SY": "packed with bzip2", b"\x28\xb5\x2f\xfd": "packed with zstd"}

# Control characters other than the tab, the line and paragraph separators, and byte-order marks left by joining files.
STRAY = re.compile("[\x00-\x08\x0a-\x1f\x7f-\x9f\u2028\u2029\ufeff]")

# No sentence is this long. Without a limit, a file that has no line feeds would be read into memory whole.
LONGEST_LINE = 1 << 24

IDENTICAL_SAMPLE = 1000
IDENTICAL_SHARE = 0.8

LARGEST_WEIGHT = 1000


class Pair(NamedTuple):
    """A sentence and its translation."""

    source: str
    target: str


@dataclass(frozen=True)
class Corpus:
    """Two text files of which line n of one translates line n of the other; or one file with a tab between the two."""

    source: Path
    """The source sentences, one a line; without a `target`, lines of source TAB target."""
    target: Path | None = None
    """The translations, line by line."""
    weight: float = 1.0
    """How often an epoch sees each pair: 3 is three times, 0.5 a random half of the pairs, another one each epoch."""
    languages: Direction | None = None
    """From which language into which, where the files' names do not say it."""

    def __post_init__(self) -> None:
        if not 0 < self.weight <= LARGEST_WEIGHT:  # also false for not a number
            raise ConfigError(
                f"weight={self.weight} cannot work.",
                where=self.name,
                remedy=f"It must be above 0 and at most {LARGEST_WEIGHT}.",
            )

    @property
    def name(self) -> str:
        """The file names, for messages."""
        return self.source.name if self.target is None else f"{self.source.name} + {self.target.name}"

    @property
    def direction(self) -> Direction:
        """From which language into which, as given or as the files are named: train.en and train.de."""
        if self.languages is not None:
            return self.languages
        return Direction() if self.target is None else Direction(language_of(self.source), language_of(self.target))

    def pairs(self, *, allow_identical: bool = False) -> Iterator[Pair]:
        """All pairs in order, blank ones too. What is wrong with the files is raised on the way, with file and line.

        A source and target that are mostly the same text are an error, unless `allow_identical`, as in a copying task.
        """
        if not allow_identical and self.target is not None and _same_file(self.source, self.target):
            raise InputError(
                "source and target are the same text: the same file is given twice.",
                where=str(self.source),
                remedy="Give the translation as the target.",
            )
        pairs = self._columns() if self.target is None else self._side_by_side(self.target)
        with closing(pairs):
            yield from pairs if allow_identical else self._unlike(pairs)

    def _side_by_side(self, target: Path) -> Generator[Pair, None, None]:
        number = 0
        with closing(_byte_lines(self.source)) as sources, closing(_byte_lines(target)) as targets:
            for number, (source_line, target_line) in enumerate(zip_longest(sources, targets), start=1):
                if source_line is None:
                    raise _unequal(self.source, number - 1, target, number + sum(1 for _ in targets))
                if target_line is None:
                    raise _unequal(target, number - 1, self.source, number + sum(1 for _ in sources))
                yield Pair(_text(source_line, self.source, number), _text(target_line, target, number))
        if number == 0:
            raise _empty(f"{self.source} and {target}")

    def _columns(self) -> Generator[Pair, None, None]:
        number = 0
        for number, line in enumerate(read_lines(self.source), start=1):
            columns = line.split("\t")
            if len(columns) != 2:
                raise InputError(
                    f"{len(columns)} column{'s' * (len(columns) != 1)} instead of two.",
                    where=f"{self.source}:{number}",
                    remedy="Write source TAB target on each line; `cut -f1,2` keeps the first two columns.",
                )
            yield Pair(*columns)
        if number == 0:
            raise _empty(str(self.source))

    def _unlike(self, pairs: Iterator[Pair]) -> Iterator[Pair]:
        """The pairs, until it is clear that they are copies: after the first thousand, or at the end of fewer."""
        sampled = identical = 0
        for pair in pairs:
            if sampled < IDENTICAL_SAMPLE:
                source, target = pair.source.strip(), pair.target.strip()
                if source and target:
                    sampled += 1
                    identical += source == target
                    if sampled == IDENTICAL_SAMPLE:
                        self._check_identical(identical, sampled)
            yield pair
        if sampled < IDENTICAL_SAMPLE:
            self._check_identical(identical, sampled)

    def _check_identical(self, identical: int, sampled: int) -> None:
        if identical > IDENTICAL_SHARE * sampled:
            raise InputError(
                f"source and target are the same text in {identical:,} of the first {sampled:,} pairs.",
                where=self.name,
                remedy="Give the translation as the target; if copying is the task, allow identical pairs.",
            )


def read_lines(path: Path) -> Iterator[str]:
    """The lines of one text file, plain, gzip or xz, as `Corpus` reads them.

    Line ends (also of Windows) and a byte-order mark at the start are removed; control characters, except the tab,
    become a space. Text that is not UTF-8 is an error with file and line.
    """
    with closing(_byte_lines(path)) as lines:
        for number, line in enumerate(lines, start=1):
            yield _text(line, path, number)


def is_tsv(path: Path) -> bool:
    """Whether a file holds both sides: it is called .tsv, or its first line that is not blank has a tab."""
    if ".tsv" in path.name.lower():
        return True
    if not path.is_file():  # also a pipe, which could be read only once
        return False
    try:
        return "\t" in next((line for line in read_lines(path) if line.strip()), "")
    except InputError:  # which reading the corpus will raise with all it has to say
        return False


def _byte_lines(path: Path) -> Generator[bytes, None, None]:
    """The lines as they are in the file, unpacked if need be."""
    number = 0
    try:
        with _open(path) as packed, _unpacked(packed, path) as file:
            while line := file.readline(LONGEST_LINE + 1):
                number += 1
                if len(line) > LONGEST_LINE:
                    raise InputError(
                        f"the line is longer than {LONGEST_LINE >> 20} MiB.",
                        where=f"{path}:{number}",
                        remedy="Put one sentence on a line. If lines end as on old Macs: tr '\\r' '\\n'.",
                    )
                yield line
    except (EOFError, zlib.error, gzip.BadGzipFile, lzma.LZMAError) as error:
        raise InputError(
            "the compressed file is cut off or damaged here.",
            where=f"{path}:{number + 1}",
            remedy="Download or compress it again.",
        ) from error
    except OSError as error:
        raise InputError(f"cannot be read: {error.strerror or error}.", where=str(path)) from error


def _open(path: Path) -> IO[bytes]:
    try:
        return path.open("rb")
    except FileNotFoundError as error:
        raise InputError("there is no such file.", where=str(path), remedy=_nearest_file(path)) from error
    except OSError as error:
        if os.path.isdir(path):  # which Windows reports as a lack of permission
            raise InputError(
                "this is a folder, not a file.", where=str(path), remedy=f"Give a file in it: {_listing(path)}."
            ) from error
        if isinstance(error, PermissionError):
            raise InputError(
                "you may not read this file.", where=str(path), remedy="Change its permissions, or copy it."
            ) from error
        raise


def _unpacked(file: IO[bytes], path: Path) -> IO[bytes]:
    start = file.peek(16)  # type: ignore[attr-defined]  # of BufferedReader, which open() gives; a pipe can do it too
    for magic, kind in UNREAD.items():
        if start.startswith(magic):
            raise InputError(f"the file is {kind}.", where=str(path), remedy="Unpack it, or pack it with gzip or xz.")
    if start.startswith(GZIP):
        return gzip.GzipFile(fileobj=file)  # type: ignore[return-value]
    if start.startswith(XZ):
        return lzma.LZMAFile(file)
    return file


def _text(line: bytes, path: Path, number: int) -> str:
    if number == 1:
        line = line.removeprefix(codecs.BOM_UTF8)
    try:
        text = line.decode("utf-8")
    except UnicodeDecodeError as error:
        utf16 = number == 1 and line.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
        guess = "utf-16" if utf16 else "latin1"
        raise InputError(
            f"not UTF-8: byte 0x{line[error.start]:02x} at position {error.start + 1} of the line.",
            where=f"{path}:{number}",
            remedy=f"Convert it, for example: iconv -f {guess} -t utf-8.",
        ) from error
    return STRAY.sub(" ", text.removesuffix("\n").rstrip("\r"))


def _same_file(one: Path, other: Path) -> bool:
    try:
        return one.samefile(other)
    except OSError:  # reading will say what is wrong
        return False


def _unequal(shorter: Path, few: int, longer: Path, many: int) -> InputError:
    return InputError(
        f"the line is missing: {shorter} has {few:,} lines, {longer} has {many:,}.",
        where=f"{shorter}:{few + 1}",
        remedy="Line n of one must translate line n of the other; find where they part, as it may be far above.",
    )


def _empty(where: str) -> InputError:
    return InputError("there are no lines.", where=where, remedy="Give at least one pair of sentences.")


def _nearest_file(path: Path) -> str:
    if not os.path.isdir(path.parent):
        return f"The folder {path.parent} does not exist either."
    close = difflib.get_close_matches(path.name, _names(path.parent), n=1)
    return f"Did you mean {close[0]!r}?" if close else f"In that folder: {_listing(path.parent)}."


def _listing(folder: Path, most: int = 5) -> str:
    names = _names(folder)
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(names[:most]) + more if names else "nothing"


def _names(folder: Path) -> list[str]:
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []
