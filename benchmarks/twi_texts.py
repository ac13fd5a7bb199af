"""The texts that the built-in Twi models were made of, from the corpora that they come from.

    python benchmarks/twi_texts.py pairs BIBLES -o DIR      # train, val and dev of everyday-en-twi, two Bibles
    python benchmarks/twi_texts.py english -o DIR           # English sentences of Tatoeba, to be translated back
    python benchmarks/twi_texts.py sane A.en A.twi -o DIR   # pairs of a translation that did not go astray

BIBLES holds bible-en-twi-asante and bible-en-twi-akuapem, each with all.en.gz and all.twi.gz, verse by verse
(docs/models.md says where they come from). `val` is taken out of the training sentences to choose weights by; the
corpus's own dev set is only measured on. What stands in either is in nothing else, whatever the names in it.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from pathlib import Path

from transduce.data.builtin import builtin_corpus
from transduce.data.corpus import Pair, read_lines
from transduce.text import Normalisation, normalise

VAL = 400
LONGEST_VERSE = 40
"""English words."""
QUOTES = str.maketrans({"ʼ": "'", "’": "'", "‘": "'", "“": None, "”": None, '"': None})
"""Apostrophes as people type them; quotation marks that a verse opens and another one shuts are left out."""
NAMES = {
    "Tom": ["Asamoah", "Kwabena", "Kwaku", "Yaw", "Appiah"],
    "Mary": ["Abena", "Esi", "Aba", "Boatemaa"],
    "John": ["Kwame"],
}
"""Names of Tatoeba, and those that the everyday corpus has in their place."""
MOST_ENGLISH = 90_000


def pairs(bibles: Path, output: Path) -> None:
    """Write train, val and dev of the everyday corpus, and the verses of two Bibles."""
    everyday = list(builtin_corpus("everyday-en-twi").pairs())
    random.Random(7).shuffle(everyday)
    firsts = list({pair.source.lower(): pair for pair in reversed(everyday)}.values())[-VAL:]
    held_out = {pair.source.lower() for pair in firsts}
    _write(output / "val", firsts)
    _write(output / "train", [pair for pair in everyday if pair.source.lower() not in held_out])
    _write(output / "dev", builtin_corpus("everyday-en-twi", "dev").pairs())
    for variety in ("akuapem", "asante"):
        folder = bibles / f"bible-en-twi-{variety}"
        sides = [_packed_lines(folder / f"all.{side}.gz") for side in ("en", "twi")]
        verses = [Pair(*(line.translate(QUOTES).strip() for line in lines)) for lines in zip(*sides, strict=True)]
        short = [verse for verse in verses if len(verse.source.split()) <= LONGEST_VERSE]
        _write(output / f"bible-{variety}", short)


def english(output: Path) -> None:
    """Write English sentences of Tatoeba with the everyday corpus's names, none that is measured on."""
    measured = {_without_names(line) for name in ("dev.en", "val.en") for line in read_lines(output / name)}
    learned = set(read_lines(output / "train.en"))
    generator, found = random.Random(3), dict[str, None]()
    for corpus in ("tatoeba-en-de", "tatoeba-en-fr"):
        for pair in builtin_corpus(corpus).pairs():
            if 2 <= len(pair.source.split()) <= 16 and _without_names(pair.source) not in measured:
                found.setdefault(pair.source)
    named = [re.sub(r"\b(Tom|Mary|John)\b", lambda name: generator.choice(NAMES[name[0]]), each) for each in found]
    rest = [each for each in named if each not in learned]
    generator.shuffle(rest)
    _write_lines(output / "english.en", rest[:MOST_ENGLISH])


def sane(source: Path, target: Path, output: Path) -> None:
    """Write the pairs of a translated text whose translation neither loops nor runs on."""
    found = map(Pair, read_lines(source), read_lines(target))
    _write(output / "back", [pair for pair in found if not _is_astray(pair.target.split())])


def _is_astray(words: list[str]) -> bool:
    twice = Counter(pairwise(words))
    return not 0 < len(words) <= 30 or max(twice.values(), default=0) > 2


def _without_names(text: str) -> str:
    """What sentences have in common that differ in names and punctuation only."""
    return re.sub(r"\W+", " ", re.sub(r"\b[A-Z][a-z]+\b", "X", text)).lower().strip()


def _packed_lines(path: Path) -> list[str]:
    with gzip.open(path, "rt", encoding="utf-8") as file:
        return [line.rstrip("\n") for line in file]


def _write(path: Path, found: Iterable[Pair]) -> None:
    letters = Normalisation.of(["en"], ["twi"]).target
    kept = list(found)
    _write_lines(path.with_name(f"{path.name}.en"), [pair.source for pair in kept])
    _write_lines(path.with_name(f"{path.name}.twi"), [normalise(pair.target, letters) for pair in kept])


def _write_lines(path: Path, lines: list[str]) -> None:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")
    print(f"{path}: {len(lines):,} lines")


def main() -> None:
    """Do what the command line says."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name, files in (("pairs", ["bibles"]), ("english", []), ("sane", ["source", "target"])):
        command = commands.add_parser(name)
        for file in files:
            command.add_argument(file, type=Path)
        command.add_argument("-o", "--output", type=Path, required=True)
    given = vars(parser.parse_args())
    given["output"].mkdir(parents=True, exist_ok=True)
    {"pairs": pairs, "english": english, "sane": sane}[given.pop("command")](**given)


if __name__ == "__main__":
    main()
