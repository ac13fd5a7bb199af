"""How well does a translator parse (§6.3)? Trains one on the built-in trees, scores it with and without the filter.

Run it with: python benchmarks/parsing.py DIRECTORY [--minutes 15] [key=value …]
where settings are those of a recipe, such as model.dropout=0.2. Running it again goes on with the same run.
"""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Sequence
from itertools import islice
from pathlib import Path

import torch

import transduce
from transduce.data.batches import BatchPlan
from transduce.data.prepare import Preparation, Prepared, prepare
from transduce.data.treebank import TREE_RULES, Treebank, protected_symbols
from transduce.engines.torch_engine import TorchEngine
from transduce.errors import InputError
from transduce.evaluation.parsing import score_trees, tree_options
from transduce.model import Transformer
from transduce.parser import Parser
from transduce.text.trees import Tree, numbered
from transduce.training.events import Event, Stepped, Validated
from transduce.training.loop import Trainer
from transduce.training.recipe import Recipe
from transduce.training.task import Validation
from transduce.training.tasks.translation import DevSet, TranslationTask

TREES = Path(transduce.__file__).parent / "assets" / "corpora" / "craft-trees"
PAPER = 91.3
"""F1 of the paper's Transformer, trained on the Wall Street Journal's 40,000 sentences (Table 4)."""
VALIDATED = 300
"""Trees of the dev set that are scored on the way."""
RECIPE = Recipe.of(
    {
        "model": {
            "encoder_layers": 3, "decoder_layers": 2, "d_model": 128, "d_ff": 256, "heads": 4, "dropout": 0.1,
            "norm_position": "pre",
        },
        "tokenizer": {"vocab_size": 4000, "shared": False},
        "training": {
            "batch_tokens": 1024, "schedule": "inverse_sqrt", "rate": 0.003, "warmup": 400, "clip": 1.0,
            "average_decay": 0.995, "validate_every": 500,
        },
    }
)  # fmt: skip


class ParsingTask(TranslationTask):
    """Translation into trees, validated by F1 of greedy search."""

    def __init__(self, model: Transformer, prepared: Prepared, dev: Sequence[Tree], recipe: Recipe) -> None:
        pairs = DevSet(prepared.dev, prepared.dev_sources, prepared.dev_references)
        super().__init__(model, prepared.vocabularies, prepared.train, pairs, recipe)
        self.trees = dev
        self.parser = Parser(prepared.vocabularies, TorchEngine(model))

    def validate(self) -> Validation:
        """Perplexity, and F1 with brackets held."""
        plan = BatchPlan(self.dev.pairs, 4000, shuffle=False).epoch(0)
        parts = [self._likelihood(indices) for indices in plan]
        loss = sum(nll for nll, _ in parts) / sum(tokens for _, tokens in parts)
        found = self.parser.parse_words([tree.words() for tree in self.trees], beam=1)
        f1 = score_trees(found, self.trees).f1
        return Validation({"f1": f1, "loss": loss, "perplexity": math.exp(loss)}, f1, [])


def main() -> None:
    """Train, then score the test trees."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("directory", type=Path)
    arguments.add_argument("--minutes", type=float, default=15)
    arguments.add_argument("settings", nargs="*")
    given = arguments.parse_args()
    torch.set_num_threads(1)
    recipe = RECIPE.with_overrides([*given.settings, f"budget.minutes={given.minutes}"])
    parser = train(given.directory, recipe)
    measure(parser, list(Treebank(TREES / "test.mrg.xz").trees()))


def train(directory: Path, recipe: Recipe) -> Parser:
    """A parser of the best weights of a run."""
    directory.mkdir(parents=True, exist_ok=True)
    bank, dev = Treebank(TREES / "train.mrg.xz"), Treebank(directory / "dev.mrg")
    trees = list(islice(Treebank(TREES / "dev.mrg.xz").trees(), VALIDATED))
    dev.source.write_text("".join(f"{tree}\n" for tree in trees), encoding="utf-8")
    settings = recipe.tokenizer.model_dump(exclude={"dropout", "protected"})
    preparation = Preparation([bank], [dev], protected=protected_symbols([bank]), rules=TREE_RULES, **settings)
    prepared = prepare(preparation, directory / "prepared")
    source, target = prepared.vocabularies.source.size, prepared.vocabularies.target.size
    torch.manual_seed(recipe.training.seed)
    model = Transformer(recipe.config(source, None if recipe.tokenizer.shared else target))
    size = sum(each.numel() for each in model.parameters())
    print(f"{len(prepared.train):,} trees, {size:,} parameters, vocabularies of {source:,} and {target:,}", flush=True)
    Trainer(ParsingTask(model, prepared, trees, recipe), recipe.training, recipe.budget, directory, report).run()
    best = Trainer.best_weights(directory)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            parameter.copy_(best.tensors[name])
    return Parser(prepared.vocabularies, TorchEngine(model.eval()))


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
    print(f"{len(trees):,} test trees        F1  precision  recall  exact  balanced  seconds")
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
    options = tree_options(parser.vocabularies, [len(words) for words in sentences], beam=beam)
    sources = parser.vocabularies.source.encode_batch([numbered(words) for words in sentences])
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
