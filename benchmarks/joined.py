"""What becomes of several sentences in one line? BLEU of pairs that are joined, cut into sentences and not.

    python benchmarks/joined.py [MODEL [CORPUS]] [--sentences 600] [--beam 4]

A model that has only seen single sentences tends to leave out what follows the first. Each row joins so many sentences
of the test set, drawn the same way each time, with a space between. "As one" is what the model makes of the whole line,
"as usual" what `transduce translate` makes of it, which cuts it into sentences. All rows hold the same sentences.
Prints a table for docs/log.md.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Sequence
from random import Random

from results.commit import commit
from results.tables import markdown_table
from transduce.data.builtin import builtin_corpus
from transduce.data.corpus import Pair
from transduce.decoding import DecodingOptions
from transduce.evaluation import evaluate
from transduce.text import normalise
from transduce.translator import Translator

MOST = 3
"""Sentences that are joined."""
Translate = Callable[[list[str]], list[str]]


def main() -> None:
    """Print BLEU for one to three sentences a line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en-de")
    parser.add_argument("corpus", nargs="?", default="tatoeba-en-de")
    parser.add_argument("--sentences", type=int, default=600)
    parser.add_argument("--beam", type=int, default=4)
    arguments = parser.parse_args()
    translator = Translator.load(arguments.model)
    pairs = list(builtin_corpus(arguments.corpus, "test").pairs())
    Random(1).shuffle(pairs)
    pairs = pairs[: arguments.sentences // 6 * 6]  # as many of two as of three
    ways = {"as one": as_one, "as usual": as_usual}
    rows = [["sentences a line", "lines", *(f"BLEU {way}" for way in ways), "words, as one : reference"]]
    for count in range(1, MOST + 1):
        lines = joined(pairs, count)
        references = [pair.target for pair in lines]
        found = {way: make(translator, arguments.beam)([pair.source for pair in lines]) for way, make in ways.items()}
        bleu = [evaluate(texts, references, metrics=("bleu",), intervals=False).bleu for texts in found.values()]
        share = _words(found["as one"]) / _words(references)
        rows.append([str(count), f"{len(lines):,}", *(f"{value:.2f}" for value in bleu), f"{share:.2f}"])
    engine = type(translator.engine).__name__
    how = f"beam {arguments.beam}, {engine}, commit {commit()}"
    print(f"{arguments.model}, {len(pairs):,} sentences of {arguments.corpus}, {how}.\n\n{markdown_table(rows)}")


def joined(pairs: Sequence[Pair], count: int) -> list[Pair]:
    """Lines of so many pairs each, in their order; what is left over is left out."""
    groups = [pairs[start : start + count] for start in range(0, len(pairs) - count + 1, count)]
    return [Pair(" ".join(pair.source for pair in group), " ".join(pair.target for pair in group)) for group in groups]


def as_one(translator: Translator, beam: int) -> Translate:
    """The whole line as one sentence, whatever its length."""

    def translate(texts: list[str]) -> list[str]:
        target = translator.vocabularies.target
        options = DecodingOptions(beam=beam, suppress=tuple(target.unwritten))
        decoded = translator.engine.decode(translator.vocabularies.encode_sources(texts, None), options)
        return [normalise(text) for text in target.decode_batch(found[0].tokens for found in decoded)]

    return translate


def as_usual(translator: Translator, beam: int) -> Translate:
    """As `transduce translate` does it."""
    return lambda texts: [each.text for each in translator.translate(texts, beam=beam)]


def _words(texts: Sequence[str]) -> int:
    return sum(len(text.split()) for text in texts)


if __name__ == "__main__":
    main()
