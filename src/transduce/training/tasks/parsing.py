"""Parsing as a task: translation into trees (§6.3), measured by F1."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from transduce.decoding import decode
from transduce.decoding.trees import tree_options
from transduce.evaluation.parsing import score_trees
from transduce.model import Transformer
from transduce.model.workers import Workers
from transduce.text import Vocabularies
from transduce.text.tokenizer import EOS, PAD
from transduce.text.trees import SymbolIds, Tree
from transduce.training.events import Sample
from transduce.training.ranks import ALONE, Ranks
from transduce.training.recipe import Recipe
from transduce.training.task import Validation, tensor
from transduce.training.tasks.translation import DevSet, TranslationTask, dev_batches

__all__ = ["ParsingTask"]

MOST_TREES = 300
"""Of the dev set, that are parsed in a validation: writing trees takes far longer than reading them."""
AT_ONCE = 32


class ParsingTask(TranslationTask):
    """Translation into trees, validated by F1 of greedy search."""

    def __init__(
        self,
        model: Transformer,
        vocabularies: Vocabularies,
        train: Any,
        dev: DevSet,
        trees: Sequence[Tree],
        recipe: Recipe,
        workers: Workers | None = None,
        ranks: Ranks = ALONE,
    ) -> None:
        super().__init__(model, vocabularies, train, dev, recipe, workers, ranks)
        self.trees = trees[:MOST_TREES]
        self.symbols = SymbolIds.of(vocabularies.target)

    def validate(self) -> Validation:
        """F1 with brackets held, and perplexity."""
        plan = dev_batches(self.dev.pairs, self.module.config.d_model, self.device)
        parts = list(self.ranks.map(self.workers, self._likelihood, plan))
        loss = sum(nll for nll, _ in parts) / max(1, sum(tokens for _, tokens in parts))
        blocks = [self.trees[start : start + AT_ONCE] for start in range(0, len(self.trees), AT_ONCE)]
        found = [tree for block in self.ranks.map(self.workers, self._parsed, blocks) for tree in block]
        scores = {"f1": score_trees(found, self.trees).f1, "loss": loss, "perplexity": math.exp(min(50.0, loss))}
        decisive = -loss if self.recipe.metric == "loss" else scores["f1"] - min(loss, 1e3) * 1e-6
        first = self.trees[0]
        return Validation(scores, decisive, [Sample(" ".join(first.words()), str(found[0]), str(first))])

    def _parsed(self, trees: Sequence[Tree]) -> list[Tree]:
        words = [tree.words() for tree in trees]
        sources = self.vocabularies.source.encode_batch([" ".join(each) for each in words])
        ids = tensor(self.device, [np.array([*source, EOS], dtype=np.uint32) for source in sources], fill=PAD)
        options = tree_options(self.symbols, [self.symbols.of_words(each) for each in words], beam=1)
        written = (hypotheses[0].tokens for hypotheses in decode(self.module, ids, options))
        symbols = self.vocabularies.target.decode_batch(written)
        return [Tree.of_symbols(each, mine) for each, mine in zip(symbols, words, strict=True)]
