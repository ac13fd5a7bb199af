"""English sentences of Tatoeba that one of its corpora does not have, for a model to translate and another to learn.

    python benchmarks/tatoeba_texts.py tatoeba-en-de -o more.en

Those of the other built-in corpus that CORPUS has not, each once, and none that CORPUS is measured on (dev and test),
however it is written.
"""

from __future__ import annotations

import argparse
import random
import re
from pathlib import Path

from transduce.data.builtin import builtin_corpus
from transduce.storage import write_whole

CORPORA = ("tatoeba-en-de", "tatoeba-en-fr")
LONGEST = 40
"""English words."""


def main() -> None:
    """Write the sentences, in an order of their own."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus", choices=CORPORA)
    parser.add_argument("-o", "--output", type=Path, required=True)
    given = parser.parse_args()
    lines = sentences(given.corpus)
    write_whole(given.output, "".join(f"{line}\n" for line in lines).encode())
    print(f"{given.output}: {len(lines):,} sentences")


def sentences(corpus: str) -> list[str]:
    """What the other corpus has and this one has not, shuffled."""
    parts = ("train", "dev", "test")
    known = {_bare(pair.source) for part in parts for pair in builtin_corpus(corpus, part).pairs()}
    found = dict[str, None]()
    other = next(name for name in CORPORA if name != corpus)
    for pair in builtin_corpus(other).pairs():
        if len(pair.source.split()) <= LONGEST and _bare(pair.source) not in known:
            found.setdefault(pair.source)
    lines = list(found)
    random.Random(3).shuffle(lines)
    return lines


def _bare(text: str) -> str:
    """What sentences have in common that differ in case and marks only."""
    return re.sub(r"\W+", " ", text).lower().strip()


if __name__ == "__main__":
    main()
