"""Data diversification (Nguyen et al., 2020): other sources for the same targets, by a model of the other direction.

    python benchmarks/diversify.py ./de-en -i train.de.gz -o back.en                        # the best of a beam
    python benchmarks/diversify.py ./de-en -i train.de.gz -o drawn.en --temperature 0.7     # or one that is drawn

Then `transduce train train.en train.de back.en train.de drawn.en train.de --weights 1,0.5,0.5 …` learns from all of
them. A line gives a line; guards are off, for what comes out is to be learned from and not read.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from transduce.data.corpus import read_lines
from transduce.storage import write_whole
from transduce.translator import Translator


def main() -> None:
    """Translate every line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("-i", "--input", type=Path, required=True)
    parser.add_argument("-o", "--output", type=Path, required=True)
    parser.add_argument("--beam", type=int, default=5)
    parser.add_argument("--temperature", type=float, help="draw instead of searching")
    parser.add_argument("--seed", type=int, default=1, help="of what is drawn")
    options = parser.parse_args()
    search: dict[str, Any] = {"beam": options.beam}
    if options.temperature is not None:
        search = {"beam": 1, "sampling": True, "temperature": options.temperature, "seed": options.seed}
    lines = list(read_lines(options.input))
    found = Translator.load(options.model).translate(lines, guard=False, mbr=False, **search)
    write_whole(options.output, "".join(f"{each.text}\n" for each in found).encode())
    print(f"{options.output}: {len(found):,} lines, {len({each.text for each in found}):,} of them different")


if __name__ == "__main__":
    main()
