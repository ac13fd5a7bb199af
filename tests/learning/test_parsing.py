"""A parser learns a small grammar, and finds the trees of sentences that it has not seen."""

from __future__ import annotations

import random
from pathlib import Path

import torch

from transduce.data.prepare import Preparation, prepare
from transduce.data.treebank import TREE_RULES, Treebank, protected_symbols
from transduce.engines.torch_engine import TorchEngine
from transduce.evaluation.parsing import score_trees
from transduce.model import Transformer
from transduce.parser import Parser
from transduce.text.trees import Tree
from transduce.training.loop import Trainer
from transduce.training.recipe import Recipe
from transduce.training.tasks.translation import DevSet, TranslationTask

NOUNS, VERBS, PLACES = ["cat", "dog", "bird", "king"], ["sees", "likes", "feeds"], ["in", "near", "under"]
RECIPE = {
    "model": {
        "encoder_layers": 2, "decoder_layers": 1, "d_model": 64, "d_ff": 128, "heads": 4, "dropout": 0.0,
        "norm_position": "pre",
    },
    "tokenizer": {"vocab_size": 900, "shared": False},
    "training": {
        "batch_tokens": 512, "schedule": "inverse_sqrt", "rate": 0.004, "warmup": 100, "average_decay": 0.9,
        "metric": "loss", "validate_every": 1000, "checkpoint_every": 1000,
    },
    "budget": {"steps": 400},
}  # fmt: skip


def noun_phrase(generator: random.Random, depth: int = 0) -> Tree:
    phrase = Tree("NP", ("the", *(["old"] if generator.random() < 0.3 else []), generator.choice(NOUNS)))
    if depth < 2 and generator.random() < 0.4:
        place = Tree("PP", (generator.choice(PLACES), noun_phrase(generator, depth + 1)))
        return Tree("NP", (phrase, place))
    return phrase


def sentence(generator: random.Random) -> Tree:
    verb_phrase = Tree("VP", (generator.choice(VERBS), noun_phrase(generator)))
    return Tree("S", (noun_phrase(generator), verb_phrase, "."))


def test_a_grammar_is_learned_from_its_trees(tmp_path: Path) -> None:
    generator = random.Random(1)
    trees = list(dict.fromkeys(sentence(generator) for _ in range(2500)))
    held_out, train = trees[:100], trees[100:]
    for name, part in (("train", train), ("dev", held_out[:20])):
        (tmp_path / f"{name}.mrg").write_text("".join(f"{tree}\n" for tree in part), encoding="utf-8")
    bank, dev = Treebank(tmp_path / "train.mrg"), Treebank(tmp_path / "dev.mrg")
    recipe = Recipe.of(RECIPE)
    symbols = protected_symbols([bank])
    preparation = Preparation([bank], [dev], vocab_size=900, shared=False, protected=symbols, rules=TREE_RULES)
    prepared = prepare(preparation, tmp_path / "prepared")
    vocabularies = prepared.vocabularies
    model = Transformer(recipe.config(vocabularies.source.size, vocabularies.target.size))
    measured = DevSet(prepared.dev, prepared.dev_sources, prepared.dev_references)
    task = TranslationTask(model, vocabularies, prepared.train, measured, recipe)
    Trainer(task, recipe.training, recipe.budget, tmp_path / "run", emit=lambda event: None).run()

    parser = Parser(vocabularies, TorchEngine(model.eval()))
    with torch.no_grad():
        found = parser.parse_words([tree.words() for tree in held_out])
    scores = score_trees(found, held_out)
    assert scores.unreadable == 0
    assert scores.f1 > 90
