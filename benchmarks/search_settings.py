"""Which search suits a model? Chosen on a dev set, then measured on a test set, once.

    python benchmarks/search_settings.py MODEL --dev SOURCE TARGET --test SOURCE TARGET
        [--with OTHER …] [--beams 5 8 16] [--alphas 0.6 1.0 1.4] [--tokenize none] [--lowercase] [--engine auto]
        [--json FILE]

Tries every beam with every length penalty, for the most probable hypothesis and for the one that the others agree with
most (consensus, `--mbr` of translate), prints BLEU and chrF of each on the dev set, and translates the test set with
the one of the highest BLEU. Guards are off: what is measured is the model. Files may be packed (.gz, .xz).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from results.commit import commit
from transduce.data.corpus import read_lines
from transduce.evaluation import Evaluation, evaluate
from transduce.translator import Translator


def main() -> None:
    """Try, choose, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dev", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--test", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--with", nargs="+", dest="beside", default=[], help="models that have a say in every word")
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 8, 16])
    parser.add_argument("--alphas", nargs="+", type=float, default=[0.6, 1.0, 1.4])
    parser.add_argument("--tokenize", default="13a", help="sacreBLEU's; none for text that is tokenised")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    translator = Translator.load(options.model, options.engine, beside=options.beside)

    def scores(files: list[Path], intervals: bool = False, **search: float) -> Evaluation:
        sources, references = (list(read_lines(path)) for path in files)
        found = translator.translate(sources, guard=False, **search)
        return evaluate(
            [each.text for each in found],
            references,
            metrics=("bleu", "chrf"),
            intervals=intervals,
            tokenize=options.tokenize,
            lowercase=options.lowercase,
        )

    models = " with ".join([options.model, *options.beside])
    print(f"{models}, {type(translator.engine).__name__}, commit {commit()}\n{'dev':28}{'BLEU':>7}{'chrF':>7}")
    tried = []
    for beam in options.beams:
        for alpha in options.alphas:
            for mbr in (False, True):
                search = {"beam": beam, "alpha": alpha, "mbr": mbr}
                found = scores(options.dev, **search)
                tried.append((found.bleu, search, found))
                how = f"beam {beam}, α {alpha:g}{', consensus' if mbr else ''}"
                print(f"{how:28}{found.bleu:7.2f}{found.chrf:7.2f}", flush=True)
    _, chosen, of_dev = max(tried, key=lambda each: each[0])
    found = scores(options.test, intervals=True, **chosen)
    bleu = found.scores["bleu"]
    print(f"test, {chosen}: BLEU {bleu.value:.2f} ({bleu.low:.1f} to {bleu.high:.1f}), chrF {found.chrf:.2f}")
    print(bleu.signature)
    if options.json:
        numbers = {"search": chosen, "dev": {"bleu": of_dev.bleu, "chrf": of_dev.chrf}}
        numbers |= {"test": {"bleu": found.bleu, "chrf": found.chrf, "signature": bleu.signature}}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
