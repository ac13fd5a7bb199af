"""How often a glossary is honoured, and what it costs: terms of a learned dictionary, demanded wherever they occur.

Run it with: python benchmarks/glossary.py [MODEL] [CORPUS] [--terms 200] [--json]
for example: python benchmarks/glossary.py en-de tatoeba-en-de

The terms are drawn from words that prefer each other in the training pairs, so most are what a careful person would
put into a glossary; some are not the form that a sentence needs, which is what a glossary costs.
"""

from __future__ import annotations

import argparse
import json
import random

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
    translator = Translator.load(asked.model)
    results: dict[str, object] = {"terms": len(glossary), "sentences": len(found)}
    for name, given in (("without", None), ("with", glossary)):
        translations = translator.translate(sources, glossary=given)
        texts = [each.text for each in translations]
        demanded = [(term, text) for (_, terms), text in zip(found, texts, strict=True) for term in terms]
        scores = evaluate(texts, references).as_dict()
        results[name] = {
            "demanded": len(demanded),
            "present": sum(is_there(term.target, text) > 0 for term, text in demanded) / max(1, len(demanded)),
            "flagged": sum(flag.code == "glossary" for each in translations for flag in each.warnings),
            "in_pieces": sum(flag.code == "pieces" for each in translations for flag in each.warnings),
            "bleu": scores["bleu"],
            "chrf": scores["chrf"],
        }
    if asked.json:
        print(json.dumps(results, indent=2))
        return
    print(f"{asked.model} on {asked.corpus}: {len(glossary)} terms, in {len(found)} test sentences")
    for name in ("without", "with"):
        row = results[name]
        assert isinstance(row, dict)
        print(
            f"{name:8} {row['present']:6.1%} of {row['demanded']} demanded terms present, BLEU {row['bleu']:.2f}, "
            f"chrF {row['chrf']:.2f}, {row['in_pieces']} in pieces, {row['flagged']} flagged"
        )


if __name__ == "__main__":
    main()
