"""Which search suits a model? Chosen on a dev set, then measured on a test set, once.

    python benchmarks/search_settings.py MODEL --dev SOURCE TARGET --test SOURCE TARGET [--with OTHER …]
        [--back REVERSE] [--weights 1.0] [--beams 5 8 16] [--alphas 0.6 1.0 1.4] [--tokenize none] [--lowercase]
        [--engine auto] [--json FILE]

Tries every beam with every length penalty, and of each takes the most probable hypothesis, the one that most others
agree with (consensus, `--mbr` of translate) and, given a model of the other direction, the one that leads back to the
source (`--back` of translate; its say by `--weights`). Prints BLEU and chrF of each on the dev set, and translates the
test set in the way of the highest BLEU. Guards are off: what is measured is the model. Files may be packed (.gz, .xz).
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from results.commit import commit
from transduce.data.corpus import read_lines
from transduce.evaluation import Evaluation, evaluate
from transduce.ranking import WAY_BACK_WEIGHT, Candidates, Consensus, Ranking, WayBack
from transduce.translator import Translator


def main() -> None:
    """Try, choose, measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model")
    parser.add_argument("--dev", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--test", nargs=2, type=Path, required=True, metavar=("SOURCE", "TARGET"))
    parser.add_argument("--with", nargs="+", dest="beside", default=[], help="models that have a say in every word")
    parser.add_argument("--back", help="a model of the other direction that has a say in the choice")
    parser.add_argument("--weights", nargs="+", type=float, default=[WAY_BACK_WEIGHT], help="of the way back")
    parser.add_argument("--beams", nargs="+", type=int, default=[5, 8, 16])
    parser.add_argument("--alphas", nargs="+", type=float, default=[0.6, 1.0, 1.4])
    parser.add_argument("--tokenize", default="13a", help="sacreBLEU's; none for text that is tokenised")
    parser.add_argument("--lowercase", action="store_true")
    parser.add_argument("--engine", default="auto")
    parser.add_argument("--json", type=Path, help="also write the numbers here")
    options = parser.parse_args()
    translator = Translator.load(options.model, options.engine, beside=options.beside)
    rankings: dict[str, Ranking | None] = {"": None, "consensus": Consensus()}
    if options.back:
        back = Translator.load(options.back)
        rankings |= {
            f"way back {weight:g}": WayBack(back.engine, back.vocabularies, weight=weight) for weight in options.weights
        }

    def candidates(files: list[Path], search: dict[str, Any]) -> list[Candidates]:
        """All that a search finds, to be ranked in several ways."""
        sources = list(read_lines(files[0]))
        found = translator.translate(sources, guard=False, mbr=False, n_best=search["beam"], **search)
        return [
            Candidates(source, [way.text for way in each.alternatives], [way.score for way in each.alternatives], False)
            for source, each in zip(sources, found, strict=True)
        ]

    def scores(files: list[Path], found: list[Candidates], choice: str, intervals: bool = False) -> Evaluation:
        ranking = rankings[choice]
        orders = ranking.orders(found) if ranking else [[0]] * len(found)
        return evaluate(
            [each.texts[order[0]] for each, order in zip(found, orders, strict=True)],
            list(read_lines(files[1])),
            metrics=("bleu", "chrf"),
            intervals=intervals,
            tokenize=options.tokenize,
            lowercase=options.lowercase,
        )

    models = " with ".join([options.model, *options.beside]) + (f", back by {options.back}" if options.back else "")
    print(f"{models}, {type(translator.engine).__name__}, commit {commit()}\n{'dev':34}{'BLEU':>7}{'chrF':>7}")
    tried = []
    for beam in options.beams:
        for alpha in options.alphas:
            search = {"beam": beam, "alpha": alpha}
            ways = candidates(options.dev, search)
            for choice in rankings:
                found = scores(options.dev, ways, choice)
                how = f"beam {beam}, α {alpha:g}{choice and ', '}{choice}"
                tried.append((found.bleu, how, search, choice, found))
                print(f"{how:34}{found.bleu:7.2f}{found.chrf:7.2f}", flush=True)
    _, how, search, choice, of_dev = max(tried, key=lambda each: each[0])
    found = scores(options.test, candidates(options.test, search), choice, intervals=True)
    bleu = found.scores["bleu"]
    print(f"test, {how}: BLEU {bleu.value:.2f} ({bleu.low:.1f} to {bleu.high:.1f}), chrF {found.chrf:.2f}")
    print(bleu.signature)
    if options.json:
        numbers = {"search": search | {"choice": choice}, "dev": {"bleu": of_dev.bleu, "chrf": of_dev.chrf}}
        numbers |= {"test": {"bleu": found.bleu, "chrf": found.chrf, "signature": bleu.signature}}
        options.json.write_text(json.dumps(numbers, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
