"""How well does a translator parse (§6.3)? Trains one on the built-in trees, scores it with and without the filter.

Run it with: python benchmarks/parsing.py DIRECTORY [--minutes 15] [--threads 1] [key=value …]
where settings are those of the recipe `parsing`, such as model.dropout=0.2. Running it again goes on with the same run,
and only measures if its minutes are spent.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence
from pathlib import Path

import torch

from transduce.data.builtin import builtin_files
from transduce.data.treebank import Treebank
from transduce.errors import InputError
from transduce.evaluation.parsing import score_trees
from transduce.parser import Parser
from transduce.text.trees import Tree
from transduce.training.events import Event, Stepped, Validated
from transduce.training.lessons import TranslationLesson
from transduce.training.recipe import Recipe
from transduce.training.recipes import find_recipe
from transduce.training.run import TrainingRun

CORPUS = "craft-trees"
PAPER = 91.3
"""F1 of the paper's Transformer, trained on the Wall Street Journal's 40,000 sentences (Table 4)."""


def main() -> None:
    """Train, then score the test trees."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("directory", type=Path)
    arguments.add_argument("--minutes", type=float, default=15)
    arguments.add_argument("--threads", type=int, default=1)
    arguments.add_argument("settings", nargs="*")
    given = arguments.parse_args()
    torch.set_num_threads(given.threads)
    train(given.directory, find_recipe("parsing").with_overrides([*given.settings, f"budget.minutes={given.minutes}"]))
    measure(Parser.load(given.directory), list(bank("test").trees()))


def bank(split: str) -> Treebank:
    """A part of the built-in trees."""
    return Treebank(builtin_files(CORPUS, split)[0])


def train(directory: Path, recipe: Recipe) -> None:
    """Make the directory a parser's."""
    run = TrainingRun(directory, recipe)
    prepared = run.prepare([bank("train")], [bank("dev")])
    lesson = TranslationLesson(prepared, recipe)
    sizes = (vocabulary.size for vocabulary in (prepared.vocabularies.source, prepared.vocabularies.target))
    print(f"{len(prepared.train):,} trees, vocabularies of {' and '.join(map(str, sizes))}", flush=True)
    run.train(lesson, report)
    run.write_bundle(lesson)


def report(event: Event) -> None:
    """A line now and then."""
    if isinstance(event, Validated):
        scores = ", ".join(f"{name} {value:.3f}" for name, value in event.scores.items())
        print(f"step {event.step:,}, {event.seconds / 60:.1f} minutes: dev {scores}", flush=True)
    elif isinstance(event, Stepped) and event.step % 100 == 0:
        print(f"step {event.step:,}, epoch {event.epoch}: perplexity {event.perplexity:.3f}", flush=True)


def measure(parser: Parser, trees: Sequence[Tree]) -> None:
    """Print scores of the test trees, with brackets held and without, greedy and with a beam."""
    sentences = [tree.words() for tree in trees]
    print(f"{len(trees):,} test trees        F1  precision  recall  exact    a tree  seconds")
    for beam in (1, 4):
        for held in (True, False):
            start = time.perf_counter()
            found = parser.parse_words(sentences, beam=beam) if held else unheld(parser, sentences, beam)
            seconds = time.perf_counter() - start
            scores = score_trees(found, trees)
            share = 100 * (1 - scores.unreadable / len(trees))
            print(
                f"beam {beam}, {'brackets held' if held else 'free':13}  {scores.f1:5.1f}  {scores.precision:9.1f}  "
                f"{scores.recall:6.1f}  {scores.exact:5.1f}  {share:7.1f}%  {seconds:7.1f}",
                flush=True,
            )
    print(f"{'the paper (WSJ)':20}  {PAPER:5.1f}")
    print(scores.signature)


def unheld(parser: Parser, sentences: Sequence[Sequence[str]], beam: int) -> list[Tree | None]:
    """The trees that a parser writes when nothing holds it; None where it is no tree over the words."""
    options = parser.options(sentences, beam=beam, suppress=parser.vocabularies.target.unwritten)
    sources = parser.vocabularies.source.encode_batch([" ".join(words) for words in sentences])
    decoded = parser.engine.decode(sources, options.replace(brackets=None))
    trees: list[Tree | None] = []
    for hypotheses, words in zip(decoded, sentences, strict=True):
        try:
            trees.append(Tree.of_symbols(parser.vocabularies.target.decode(hypotheses[0].tokens), words))
        except InputError:
            trees.append(None)
    return trees


if __name__ == "__main__":
    main()
