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

from collections.abc import Callable, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.data.corpus import Corpus
from transduce.data.prepare import Preparation, Prepared, Report, prepare, prepared_otherwise
from transduce.decoding import DecodingOptions
from transduce.errors import ConfigError
from transduce.model import Transformer, TransformerConfig
from transduce.model.workers import Workers
from transduce.storage import storage_errors, write_whole
from transduce.text import Direction, Vocabularies
from transduce.training.allocator import freed_memory_kept
from transduce.training.events import Event, Finished
from transduce.training.log import EventLog
from transduce.training.loop import Trainer
from transduce.training.page import training_page
from transduce.training.recipe import Recipe
from transduce.training.tasks.translation import DevSet, TranslationTask
from transduce.training.tensorboard import TensorBoard

__all__ = ["TrainingRun"]


class TrainingRun:
    """Trains a translator in a directory, or goes on with the one that is being trained there."""

    def __init__(self, directory: Path, recipe: Recipe) -> None:
        self.directory, self.recipe = directory, recipe
        self.work = directory / "run"
        self._prepared = self.work / "prepared"
        recipe.check_budget()
        self._check_recipe()

    def prepare(
        self,
        corpora: Sequence[Corpus],
        dev: Sequence[Corpus] = (),
        allow_identical: bool = False,
        report: Report = lambda *_: None,
    ) -> Prepared:
        """Turn the corpora into ids; done once."""
        settings = self.recipe.tokenizer.model_dump(exclude={"dropout"})  # which comes with each batch
        preparation = Preparation(corpora, dev, allow_identical=allow_identical, **settings)
        with storage_errors(self.directory):
            if any((self.work / "checkpoints").glob("step-*")) and prepared_otherwise(preparation, self._prepared):
                raise ConfigError(
                    f"the run there was begun with other text than {preparation.name}, or with other weights.",
                    where=str(self.directory),
                    remedy="Give another directory with -o, or the old text.",
                )
            return prepare(preparation, self._prepared, report)

    def train(
        self, prepared: Prepared, emit: Callable[[Event], None], should_stop: Callable[[], bool] = lambda: False
    ) -> Finished:
        """Train until the budget is spent, nothing improves or someone asks to stop."""
        with storage_errors(self.directory):
            self.work.mkdir(parents=True, exist_ok=True)
            write_whole(self.work / "recipe.yaml", self.recipe.dump().encode())
        torch.manual_seed(self.recipe.training.seed)
        # Built on the CPU, so that a seed gives the same weights everywhere; GPUs are used but untested so far.
        model = Transformer(self._config(prepared.vocabularies))
        model.to("cuda" if torch.cuda.is_available() else "cpu")
        dev = DevSet(prepared.dev, prepared.dev_sources, prepared.dev_references)
        settings = self.recipe.training
        # What is compiled is one thread's: with several, each would compile it.
        device = next(model.parameters()).device
        workers = Workers() if settings.compile else Workers.suited_to(device, settings.batch_tokens)
        task = TranslationTask(model, prepared.vocabularies, prepared.train, dev, self.recipe, workers)
        log, curves = EventLog(self.directory / "log.jsonl"), TensorBoard(self.work / "tensorboard")
        with freed_memory_kept(), storage_errors(self.directory), log, curves, workers:

            def record(event: Event) -> None:
                for listener in (log.write, curves.write, emit):
                    listener(event)

            trainer = Trainer(task, settings, self.recipe.budget, self.work, record, should_stop, workers)
            return trainer.run()

    def write_bundle(self, prepared: Prepared, directions: Sequence[Direction]) -> Bundle:
        """Make the best weights the model of the directory; `directions` are those of the corpora."""
        best = Trainer.best_weights(self.work)
        config = BundleConfig(
            architecture=asdict(self._config(prepared.vocabularies)),
            **_languages(directions, self.recipe.tokenizer.language_tags),
        )
        scores = {"dev": best.values["scores"] | {"decoding": "greedy"}, "step": best.step}
        if "mean_of" in best.values:
            scores["mean_of_steps"] = best.values["mean_of"]
        card = _card(self.directory.name, prepared, best.values["scores"], directions)
        page = training_page(self.directory.name, self.directory / "log.jsonl")
        with storage_errors(self.directory):
            write_whole(self.directory / "training.html", page.encode())
            return Bundle.write(self.directory, config, best.tensors, prepared.vocabularies, scores, card)

    def _config(self, vocabularies: Vocabularies) -> TransformerConfig:
        target = None if vocabularies.shared else vocabularies.target.size
        return self.recipe.config(vocabularies.source.size, target)

    def _check_recipe(self) -> None:
        """A run is continued with the recipe that it was begun with; only its budget may change."""
        before = self.work / "recipe.yaml"
        if not before.is_file():
            return
        old, new = Recipe.load(before).model_dump(), self.recipe.model_dump()
        changes = [
            f"{part}.{key}: {old[part].get(key)} before, {new[part].get(key)} now"
            for part in ("model", "tokenizer", "training")
            for key in sorted(old[part].keys() | new[part].keys())
            if old[part].get(key) != new[part].get(key)
        ]
        if changes:
            raise ConfigError(
                f"the run there was begun with another recipe ({'; '.join(changes)}).",
                where=str(self.directory),
                remedy="Give another directory with -o, or the old settings.",
            )


def _languages(directions: Sequence[Direction], tagged: bool) -> dict[str, Any]:
    """What a model's description says of languages: a side's only one, or with tags all that it writes."""
    sources, targets = (list(dict.fromkeys(filter(None, side))) for side in zip(*directions, strict=True))
    return {
        "source_language": sources[0] if len(sources) == 1 else None,
        "target_language": targets[0] if len(targets) == 1 or tagged else None,
        "target_languages": targets if tagged else [],
    }


def _card(name: str, prepared: Prepared, scores: dict[str, float], directions: Sequence[Direction]) -> str:
    described = (f"{each.source or '?'} → {each.target or '?'}" for each in directions)
    direction = ", ".join(dict.fromkeys(described))
    options = DecodingOptions()
    return f"""# {name}

A translation model, {direction}, trained with transduce.

- Trained on {len(prepared.train):,} pairs, measured on {len(prepared.dev):,} pairs that it has not seen.
- Dev set, greedy: BLEU {scores["bleu"]:.1f}, chrF {scores["chrf"]:.1f}, perplexity {scores["perplexity"]:.2f}.
- Decodes with beam {options.beam} and length penalty {options.length_penalty} {options.alpha} unless told otherwise.
- The recipe is in `run/recipe.yaml`, the history in `log.jsonl`.

State here where the text came from and under which licence.
"""
