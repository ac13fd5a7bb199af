"""Terms that are to be translated in a given way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.errors import InputError
from transduce.guards.parts import Part
from transduce.text import normalise

__all__ = ["LONGEST_TERM", "Glossary", "Term", "capitalised", "is_there"]

LONGEST_TERM = 100
"""Characters of a term, on either side."""
WORD = re.compile(r"\w+")


@dataclass(frozen=True)
class Term:
    """A term, what it is to become, and how it is recognised."""

    source: str
    target: str
    pattern: re.Pattern[str]
    """The term as it may be written: in any case, unless it has capitals inside, and with any space between words."""

    @property
    def is_kept(self) -> bool:
        """Whether it is not to be translated at all."""
        return self.source == self.target


class Glossary:
    """Source terms and their target terms.

    >>> Glossary({"bank account": "Girokonto", "Acme Cloud": "Acme Cloud"})
    >>> Glossary.read("terms.tsv")
    """

    def __init__(self, terms: Mapping[str, str] | Iterable[Sequence[str]] = ()) -> None:
        """Of a dict, or of pairs; of entries for the same words the last counts."""
        self._by_word: dict[str, list[Term]] = {}
        self._targets: dict[str, str] = {}
        entries: dict[str, Sequence[str]] = {}
        for pair in terms.items() if isinstance(terms, Mapping) else terms:
            if len(pair) != 2 or not all(isinstance(term, str) for term in pair):
                raise InputError("a glossary entry is not two texts.", remedy="Give a source term and a target term.")
            entries[_key(pair[0])] = pair
        for source, target in entries.values():
            self._add(source, target)
        self._sort()

    @classmethod
    def read(cls, path: str | Path) -> Glossary:
        """Of a file: in each line a source term, a tab and its target term; lines that begin with # are comments."""
        from transduce.data.corpus import read_lines

        glossary = cls()
        lines: dict[str, int] = {}
        for number, line in enumerate(read_lines(Path(path)), start=1):
            if not line.strip() or line.lstrip().startswith("#"):
                continue
            where = f"{path}:{number}"
            columns = line.split("\t")
            if len(columns) != 2:
                raise InputError(
                    f"a line of a glossary has two columns, this one {len(columns)}.",
                    where=where,
                    remedy="Write: source term, tab, target term.",
                )
            try:
                glossary._add(*columns)
            except InputError as error:
                first = f" The first is in line {lines[key]}." if (key := _key(columns[0])) in lines else ""
                raise InputError(error.what + first, where=where, remedy=error.remedy) from error
            lines.setdefault(_key(columns[0]), number)
        glossary._sort()
        return glossary

    def __len__(self) -> int:
        return len(self._targets)

    def find(self, text: str, parts: Sequence[Part] = ()) -> list[tuple[Part, Term]]:
        """The terms of a text, in order: whole words, longest first, outside of its parts."""
        found: list[tuple[Part, Term]] = []
        position = 0
        for word in WORD.finditer(text):
            for term in self._by_word.get(word.group().casefold(), ()):
                start = word.start() - WORD.search(term.source).start()  # type: ignore[union-attr]
                match = term.pattern.match(text, start) if start >= position else None
                if match and not any(part.start < match.end() and start < part.end for part in parts):
                    filling = match.group() if term.is_kept else _in_case_of(match.group(), term)
                    found.append((Part(start, match.end(), "term", filling), term))
                    position = match.end()
                    break
        return found

    def _add(self, source: str, target: str) -> None:
        source, target = normalise(source), normalise(target)
        for term in (source, target):
            if not WORD.search(term):
                raise InputError(f"the term {term!r} has no words.", remedy="Write it out, or leave the line out.")
            if len(term) > LONGEST_TERM:
                raise InputError(
                    f"the term {term[:40] + '…'!r} is too long.", remedy=f"Use at most {LONGEST_TERM} characters."
                )
        key = _key(source)
        if self._targets.setdefault(key, target) != target:
            raise InputError(f"the term {source!r} has two targets.", remedy="Leave one of them.")
        first = WORD.search(source).group().casefold()  # type: ignore[union-attr]
        words = r"\s+".join(map(re.escape, source.split()))
        before, after = (r"(?<!\w)" if source[0].isalnum() else ""), (r"(?!\w)" if source[-1].isalnum() else "")
        flags = re.IGNORECASE if not _has_capitals_inside(source) else re.RegexFlag(0)
        found = Term(source, target, re.compile(before + words + after, flags))
        self._by_word.setdefault(first, []).append(found)

    def _sort(self) -> None:
        for terms in self._by_word.values():
            terms.sort(key=lambda term: -len(term.source))


def is_there(term: str, text: str) -> int:
    """How often a text holds a term as whole words, in any case."""
    before, after = (r"(?<!\w)" if term[0].isalnum() else ""), (r"(?!\w)" if term[-1].isalnum() else "")
    return len(re.findall(before + re.escape(term) + after, text, re.IGNORECASE))


def capitalised(text: str) -> str:
    """A text with a capital first letter."""
    return text[:1].upper() + text[1:]


def _in_case_of(written: str, term: Term) -> str:
    """The target term; in capitals if the source term was written so, and is not always."""
    return term.target.upper() if written.isupper() and len(written) > 1 and not term.source.isupper() else term.target


def _has_capitals_inside(term: str) -> bool:
    return any(any(map(str.isupper, word[1:])) for word in term.split())


def _key(source: str) -> str:
    """Equal for sources that the same words would be taken for."""
    source = normalise(source)
    return source if _has_capitals_inside(source) else source.casefold()
