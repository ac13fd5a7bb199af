"""A training run: a directory that can be left at any moment and gone back to.

my-model/run/recipe.yaml     what was asked for, as resolved
my-model/run/prepared/       the corpus as ids
my-model/run/checkpoints/    the newest ones
my-model/run/best/           the weights that validated best
my-model/run/snapshots/      weights to be averaged, and mean/, their mean, if the recipe says so
my-model/run/tensorboard/    curves for TensorBoard, where it is installed
my-model/log.jsonl           every event
my-model/training.html       its curves, once training is complete
my-model/…                   the model itself, once training is complete (see transduce.bundle)
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from copy import deepcopy
from dataclasses import replace
from pathlib import Path

import torch

from transduce.bundle import Bundle
from transduce.data.corpus import Corpus
from transduce.data.encoding import Hands
from transduce.data.examples import ExamplePreparation, PreparedExamples, prepare_examples, prepared_from_others
from transduce.data.prepare import Preparation, Prepared, Report, prepare, prepared_otherwise
from transduce.data.treebank import TREE_RULES, Treebank, protected_symbols
from transduce.errors import ConfigError
from transduce.model.workers import Workers
from transduce.storage import storage_errors, write_whole
from transduce.text import Vocabularies
from transduce.training.allocator import freed_memory_kept
from transduce.training.events import Event, Finished, Resumed, Started
from transduce.training.lessons import Lesson, new_model
from transduce.training.log import EventLog
from transduce.training.loop import Trainer
from transduce.training.page import training_page
from transduce.training.ranks import ALONE, Ranks
from transduce.training.recipe import Recipe
from transduce.training.tensorboard import TensorBoard
from transduce.training.transfer import transfer

__all__ = ["TrainingRun"]


class TrainingRun:
    """Trains a model in a directory, or goes on with the one that is being trained there."""

    def __init__(self, directory: Path, recipe: Recipe, ranks: Ranks = ALONE, sharded: bool = False) -> None:
        self.directory, self.recipe, self.ranks = directory, recipe, ranks
        self.sharded = sharded
        """Whether ranks have a share each of the weights, or all of them."""
        self.work = directory / "run"
        self._prepared = self.work / "prepared"
        recipe.check_budget()
        if sharded:
            _check_sharded(recipe, ranks)
        ranks.leader_first(self._check_recipe)

    def prepare(
        self,
        corpora: Sequence[Corpus],
        dev: Sequence[Corpus] = (),
        allow_identical: bool = False,
        report: Report = lambda *_: None,
        vocabularies: Vocabularies | None = None,
        hands: Hands | None = None,
    ) -> Prepared:
        """Turn the corpora into ids, of `vocabularies` or of ones that are learned from them; done once."""
        settings = self.recipe.tokenizer.model_dump(exclude={"dropout"})  # which comes with each batch
        settings |= self.recipe.data.model_dump()
        if self.recipe.task == "parsing":
            trees = [corpus for corpus in corpora if isinstance(corpus, Treebank)]
            settings |= {"protected": protected_symbols(trees), "rules": TREE_RULES}
        preparation = Preparation(corpora, dev, allow_identical=allow_identical, vocabularies=vocabularies, **settings)
        with storage_errors(self.directory):
            self._check_data(preparation.name, lambda: prepared_otherwise(preparation, self._prepared))
            return self.ranks.leader_first(lambda: prepare(preparation, self._prepared, report, hands))

    def prepare_examples(self, preparation: ExamplePreparation, report: Report = lambda *_: None) -> PreparedExamples:
        """Turn texts and what stands beside them into ids; done once."""
        with storage_errors(self.directory):
            self._check_data(preparation.name, lambda: prepared_from_others(preparation, self._prepared))
            return self.ranks.leader_first(lambda: prepare_examples(preparation, self._prepared, report))

    def train(
        self,
        lesson: Lesson,
        emit: Callable[[Event], None],
        should_stop: Callable[[], bool] = lambda: False,
        start_from: Bundle | None = None,
    ) -> Finished:
        """Train until the budget is spent, nothing improves or someone asks to stop."""
        torch.manual_seed(self.recipe.training.seed)
        # Built on the CPU, so that a seed gives the same weights everywhere; GPUs are used but untested so far.
        model, ranks = new_model(lesson, self.recipe), self.ranks
        begins = not any((self.work / "checkpoints").glob("step-*"))
        transferred = transfer(start_from, model, self.recipe.family) if start_from is not None and begins else None
        with storage_errors(self.directory):  # not before, for what does not fit is given up without a trace
            self.work.mkdir(parents=True, exist_ok=True)
            if ranks.leads:
                write_whole(self.work / "recipe.yaml", self.recipe.dump().encode())
        model.to(ranks.device)
        settings = self.recipe.training
        # What is compiled is one thread's: with several, each would compile it. Shares are brought together by one.
        alone = settings.compile or self.sharded
        workers = Workers() if alone else Workers.suited_to(ranks.device, settings.batch_tokens // ranks.count)
        task = lesson.task(model, workers, ranks)
        whole = lesson.task(deepcopy(model), workers, ranks) if self.sharded else None
        with freed_memory_kept(), storage_errors(self.directory), self._listeners(emit) as record, workers:
            if transferred is not None:
                record(transferred)
            trainer = Trainer(task, settings, self.recipe.budget, self.work, record, should_stop, workers, ranks, whole)
            return trainer.run()

    @contextmanager
    def _listeners(self, emit: Callable[[Event], None]) -> Iterator[Callable[[Event], None]]:
        """Who hears of events: a log, curves and `emit`; of several ranks only the leader has something to say."""
        if not self.ranks.leads:
            yield lambda event: None
            return
        with EventLog(self.directory / "log.jsonl") as log, TensorBoard(self.work / "tensorboard") as curves:

            def record(event: Event) -> None:
                if isinstance(event, Started | Resumed):
                    event = replace(event, repeats=max(0, log.reached - event.step))
                for listener in (log.write, curves.write, emit):
                    listener(event)

            yield record

    def write_bundle(self, lesson: Lesson) -> Bundle:
        """Make the best weights the model of the directory."""
        best = Trainer.best_weights(self.work)
        dev = best.values["scores"]
        written = {"decoding": "greedy"} if {"bleu", "f1"} & dev.keys() else {}  # the others write nothing
        scores = {"dev": dev | written, "step": best.step}
        if "mean_of" in best.values:
            scores["mean_of_steps"] = best.values["mean_of"]
        card = lesson.card(self.directory.name, best.values["scores"])
        page = training_page(self.directory.name, self.directory / "log.jsonl")
        with storage_errors(self.directory):
            write_whole(self.directory / "training.html", page.encode())
            return Bundle.write(self.directory, lesson.described(), best.tensors, lesson.vocabularies, scores, card)

    def _check_data(self, name: str, prepared_otherwise: Callable[[], bool]) -> None:
        """A run that has learned something goes on with the data that it has learned from."""
        if any((self.work / "checkpoints").glob("step-*")) and prepared_otherwise():
            raise ConfigError(
                f"the run there was begun with other text than {name}, or with other weights.",
                where=str(self.directory),
                remedy="Give another directory with -o, or the old text.",
            )

    def _check_recipe(self) -> None:
        """A run is continued with the recipe that it was begun with; only its budget may change."""
        before = self.work / "recipe.yaml"
        if not before.is_file():
            return
        old, new = Recipe.load(before).model_dump(), self.recipe.model_dump()
        changes = [f"{key}: {old[key]} before, {new[key]} now" for key in ("task", "network") if old[key] != new[key]]
        changes += [
            f"{part}.{key}: {old[part].get(key)} before, {new[part].get(key)} now"
            for part in ("model", "tokenizer", "objective", "training")
            for key in sorted(old[part].keys() | new[part].keys())
            if old[part].get(key) != new[part].get(key)
        ]
        if changes:
            raise ConfigError(
                f"the run there was begun with another recipe ({'; '.join(changes)}).",
                where=str(self.directory),
                remedy="Give another directory with -o, or the old settings.",
            )


def _check_sharded(recipe: Recipe, ranks: Ranks) -> None:
    if ranks.count == 1:
        raise ConfigError("one rank has nobody to share with.", remedy="Give --devices as well, or leave out --shard.")
    if recipe.training.optimizer == "muon":
        raise ConfigError(
            "Muon needs whole matrices, and with --shard no rank has one.",
            remedy="Give training.optimizer=adam, with a rate and a warm-up for it, or leave out --shard.",
        )
    if recipe.family not in ("transformer", "decoder-only", "encoder-only"):
        raise ConfigError(f"--shard is not for networks of the kind {recipe.family!r}.", remedy="Leave it out.")
