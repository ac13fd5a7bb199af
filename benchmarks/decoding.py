"""How is a model best decoded? BLEU and chrF by beam and length penalty, with and without consensus (--mbr).

    python benchmarks/decoding.py [MODEL [CORPUS]] [--beams 1 4 8 16] [--alphas 0.6 1.0] [--sentences 500]

Prints a table for docs/log.md. The corpus is a built-in one by name, of which the test set is taken. CPU time is that
of all threads; of consensus it is for the decoding and the choice.
"""

from __future__ import annotations

import argparse
import time

from results.commit import commit
from results.tables import markdown_table
from transduce.data.builtin import builtin_corpus
from transduce.evaluation import evaluate
from transduce.translator import Translator


def main() -> None:
    """Translate the test set in every way and print the scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="en-de")
    parser.add_argument("corpus", nargs="?", default="tatoeba-en-de")
    parser.add_argument("--beams", type=int, nargs="+", default=[1, 4, 8, 16])
    parser.add_argument("--alphas", type=float, nargs="+", default=[0.0, 0.6, 1.0])
    parser.add_argument("--sentences", type=int, help="the first so many (default: all)")
    arguments = parser.parse_args()
    pairs = list(builtin_corpus(arguments.corpus, "test").pairs())[: arguments.sentences]
    sources, references = zip(*pairs, strict=True)
    translator = Translator.load(arguments.model)
    translator.translate(sources[:50])  # what is loaded when it is first needed
    rows = [["beam", "α", "BLEU", "chrF", "CPU s", "BLEU by consensus", "chrF", "CPU s"]]
    for beam in arguments.beams:
        for alpha in arguments.alphas:
            row = [str(beam), f"{alpha:g}"]
            for mbr in (False, True):
                if mbr and beam == 1:
                    row += ["", "", ""]
                    continue
                start = time.process_time()
                found = translator.translate(sources, beam=beam, alpha=alpha, mbr=mbr)
                seconds = time.process_time() - start
                scores = evaluate([each.text for each in found], references, metrics=("bleu", "chrf"), intervals=False)
                row += [f"{scores.bleu:.2f}", f"{scores.chrf:.2f}", f"{seconds:.1f}"]
            rows.append(row)
            print(" ".join(row), flush=True)
    engine = type(translator.engine).__name__
    print(f"\n{arguments.model}, {len(pairs):,} sentences of {arguments.corpus}, {engine}, commit {commit()}.\n")
    print(markdown_table(rows))


if __name__ == "__main__":
    main()
