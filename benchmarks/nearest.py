"""What a model would say that is nearest to what a person said: simpler targets for a small model to learn from.

    python benchmarks/nearest.py en-de tatoeba-en-de -o near
    python benchmarks/nearest.py ./en-twi train.en train.twi -o near

Of the beam's hypotheses for each source of the training text, the one that is most like one of its translations there,
by chrF (sequence-level interpolation: Kim and Rush, 2016). Then `transduce train … near.en near.de --weights 1,0.7`
learns from them as well. Each source comes once, however many translations it has, and those for which nothing comes
near (--least) are left out: a model that learns whatever it says learns its own mistakes.
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from transduce.data.builtin import builtin_corpus
from transduce.data.corpus import Corpus
from transduce.evaluation.consensus import agreement
from transduce.storage import write_whole
from transduce.translator import Translator

AT_ONCE = 4096
"""Sources whose hypotheses are in memory."""


def main() -> None:
    """Write a hypothesis for each source."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("corpus", nargs="+", help="a built-in corpus, or two files")
    parser.add_argument("-o", "--output", required=True, help="such as near, for near.en and near.de")
    parser.add_argument("--beam", type=int, default=8)
    parser.add_argument("--least", type=float, default=60.0, help="chrF that a hypothesis must have (default: 60)")
    given = parser.parse_args()
    if len(given.corpus) > 2:
        parser.error("one corpus: a name, or two files")
    corpus = builtin_corpus(*given.corpus) if len(given.corpus) == 1 else Corpus(*map(Path, given.corpus))
    translator = Translator.load(given.model)
    config = translator.bundle.config
    references: dict[str, list[str]] = {}
    for pair in corpus.pairs():
        references.setdefault(pair.source, []).append(pair.target)
    sources, kept = list(references), list[tuple[str, str]]()
    for start in range(0, len(sources), AT_ONCE):
        block = sources[start : start + AT_ONCE]
        found = translator.translate(block, guard=False, mbr=False, beam=given.beam, n_best=given.beam)
        for source, each in zip(block, found, strict=True):
            hypotheses = [way.text for way in each.alternatives]
            place, likeness = nearest(hypotheses, references[source])
            if likeness >= given.least:
                kept.append((source, hypotheses[place]))
        print(f"{start + len(block):,} of {len(sources):,} sources, {len(kept):,} kept", flush=True)
    for side, language in enumerate((config.source_language, config.target_language)):
        write_whole(Path(f"{given.output}.{language}"), "".join(f"{pair[side]}\n" for pair in kept).encode())


def nearest(hypotheses: list[str], references: list[str]) -> tuple[int, float]:
    """The place of the hypothesis that is most like one of the references, and how like it is, from 0 to 100."""
    likeness = agreement([*hypotheses, *references])[: len(hypotheses), len(hypotheses) :].max(axis=1)
    return int(np.argmax(likeness)), float(likeness.max())


if __name__ == "__main__":
    main()
