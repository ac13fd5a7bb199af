"""Of a text that a model has translated, the pairs that another one may learn from: those the first was sure of.

    transduce translate -m en-de --back de-en --beam 8 --json -i more.en -o more.jsonl
    python benchmarks/sure.py more.jsonl --least 0.5 -o more.en more.de

Left out is what has too little confidence, a warning or no words, or says two words together three times.
"""

from __future__ import annotations

import argparse
import json
from collections import Counter
from itertools import pairwise
from pathlib import Path
from typing import Any

from transduce.storage import write_whole


def main() -> None:
    """Write two files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("translated", type=Path, help="what `transduce translate --json` has written")
    parser.add_argument("--least", type=float, required=True, help="confidence, from 0 to 1")
    parser.add_argument("-o", "--output", type=Path, nargs=2, required=True, metavar=("SOURCE", "TARGET"))
    given = parser.parse_args()
    with given.translated.open(encoding="utf-8") as lines:
        found = [json.loads(line) for line in lines]
    kept = [each for each in found if is_sure(each, given.least)]
    for path, side in zip(given.output, ("source", "translation"), strict=True):
        write_whole(path, "".join(f"{each[side]}\n" for each in kept).encode())
    print(f"{len(kept):,} of {len(found):,} pairs")


def is_sure(translated: dict[str, Any], least: float) -> bool:
    """Whether a translation may be learned from."""
    words = translated["translation"].split()
    twice = max(Counter(pairwise(words)).values(), default=0)
    return bool(words) and translated["confidence"] >= least and not translated["warnings"] and twice < 3


if __name__ == "__main__":
    main()
