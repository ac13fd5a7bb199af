"""How often a glossary is honoured, and what it costs: terms of a learned dictionary, demanded wherever they occur.

Run it with: python benchmarks/glossary.py [MODEL] [CORPUS] [--terms 200] [--json]
for example: python benchmarks/glossary.py en-de tatoeba-en-de

The terms are drawn from words that prefer each other in the training pairs. Where the reference has them too, they are
what a careful person would demand (the custom of the papers on terminology). Where it has not, they are another
word, or a form that the sentence cannot have (“vert” for green eyes): the model obeys, and BLEU pays for it. Both are
measured, together and apart.
"""

from __future__ import annotations

import argparse
import json
import random
from collections.abc import Iterable
from itertools import compress
from operator import not_
from typing import Any

from transduce.data.builtin import builtin_corpus
from transduce.data.lexicon import learn_lexicon
from transduce.evaluation import evaluate
from transduce.guards import Glossary
from transduce.guards.glossary import is_there
from transduce.translator import Translator

LETTERS = 5
"""Of a source term at least: shorter words are seldom terms."""


def main() -> None:
    """Print how many of the demanded terms are in the translations, and BLEU with and without the glossary."""
    parser = argparse.ArgumentParser(description="How often a glossary is honoured, and what it costs.")
    parser.add_argument("model", nargs="?", default="en-de")
    parser.add_argument("corpus", nargs="?", default="tatoeba-en-de")
    parser.add_argument("--terms", type=int, default=200)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args()

    train, test = builtin_corpus(asked.corpus).pairs(), list(builtin_corpus(asked.corpus, "test").pairs())
    spelling = {word.lower(): word for pair in test for word in pair.target.split() if word.isalpha()}
    lexicon = {
        source: spelling.get(target, target) for source, target in learn_lexicon(train).items() if source != target
    }
    usable = sorted(source for source in lexicon if len(source) >= LETTERS and source.isalpha())
    drawn = random.Random(0).sample(usable, min(asked.terms, len(usable)))
    glossary = Glossary({source: lexicon[source] for source in drawn})

    found = [(pair, [term for _, term in glossary.find(pair.source)]) for pair in test]
    found = [(pair, terms) for pair, terms in found if terms]
    sources, references = [pair.source for pair, _ in found], [pair.target for pair, _ in found]
    right = [all(is_there(term.target, pair.target) for term in terms) for pair, terms in found]
    translator = Translator.load(asked.model)
    results: dict[str, Any] = {"terms": len(glossary), "sentences": len(found)}
    for name, given in (("without", None), ("with", glossary)):
        translations = translator.translate(sources, glossary=given)
        texts = [each.text for each in translations]
        demanded = [(term, text) for (_, terms), text in zip(found, texts, strict=True) for term in terms]
        results[name] = {
            "demanded": len(demanded),
            "present": sum(is_there(term.target, text) > 0 for term, text in demanded) / max(1, len(demanded)),
            "flagged": sum(flag.code == "glossary" for each in translations for flag in each.warnings),
            "in_pieces": sum(flag.code == "pieces" for each in translations for flag in each.warnings),
            "all": _scores(texts, references),
            "in reference": _scores(compress(texts, right), compress(references, right)),
            "not in reference": _scores(*(compress(each, map(not_, right)) for each in (texts, references))),
        }
    if asked.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{asked.model} on {asked.corpus}: {len(glossary)} terms, in {len(found)} test sentences")
    for name in ("without", "with"):
        row = results[name]
        print(
            f"{name:8} {row['present']:6.1%} of {row['demanded']} demanded terms present, "
            f"{row['in_pieces']} in pieces, {row['flagged']} flagged"
        )
    for part in ("all", "in reference", "not in reference"):
        without, given = results["without"][part], results["with"][part]
        print(
            f"{part:17} {given['sentences']:4} sentences: BLEU {without['bleu']:.2f} without, "
            f"{given['bleu']:.2f} with; chrF {without['chrf']:.2f}, {given['chrf']:.2f}"
        )


def _scores(texts: Iterable[str], references: Iterable[str]) -> dict[str, float]:
    ours = list(texts)
    found = evaluate(ours, list(references)).as_dict()
    return {"sentences": len(ours), "bleu": found["bleu"], "chrf": found["chrf"]}


if __name__ == "__main__":
    main()
