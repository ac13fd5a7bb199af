"""A training run: a directory that can be left at any moment and gone back to.

my-model/run/recipe.yaml     what was asked for, as resolved
my-model/run/prepared/       the corpus as ids
my-model/run/checkpoints/    the newest ones
my-model/run/best/           the weights that validated best
my-model/log.jsonl           every event
my-model/training.html       its curves, once training is complete
my-model/…                   the model itself, once training is complete (see transduce.bundle)
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import torch

from transduce.bundle import Bundle, BundleConfig
from transduce.data.corpus import Corpus
from transduce.data.prepare import Preparation, Prepared, Report, prepare
from transduce.decoding import DecodingOptions
from transduce.errors import ConfigError
from transduce.model import Transformer
from transduce.training.events import Event, Finished
from transduce.training.loop import Trainer
from transduce.training.page import training_page
from transduce.training.recipe import Recipe
from transduce.training.tasks.translation import DevSet, TranslationTask

__all__ = ["TrainingRun"]


class TrainingRun:
    """Trains a translator in a directory, or goes on with the one that is being trained there."""

    def __init__(self, directory: Path, recipe: Recipe) -> None:
        self.directory, self.recipe = directory, recipe
        self.work = directory / "run"
        self._check_recipe()

    def prepare(
        self, corpus: Corpus, dev: Corpus | None, allow_identical: bool = False, report: Report = lambda *_: None
    ) -> Prepared:
        """Turn the corpus into ids; done once."""
        settings = self.recipe.tokenizer
        preparation = Preparation(corpus, dev, settings.vocab_size, settings.kind, allow_identical=allow_identical)
        return prepare(preparation, self.work / "prepared", report)

    def train(
        self, prepared: Prepared, emit: Callable[[Event], None], should_stop: Callable[[], bool] = lambda: False
    ) -> Finished:
        """Train until the budget is spent, nothing improves or someone asks to stop."""
        self.work.mkdir(parents=True, exist_ok=True)
        (self.work / "recipe.yaml").write_text(self.recipe.dump(), encoding="utf-8")
        torch.manual_seed(self.recipe.training.seed)
        # Built on the CPU, so that a seed gives the same weights everywhere; GPUs are used but untested so far.
        model = Transformer(self.recipe.config(prepared.tokenizer.size))
        model.to("cuda" if torch.cuda.is_available() else "cpu")
        dev = DevSet(prepared.dev, prepared.dev_sources, prepared.dev_references)
        task = TranslationTask(model, prepared.tokenizer, prepared.train, dev, self.recipe)
        with (self.directory / "log.jsonl").open("a", encoding="utf-8") as log:

            def record(event: Event) -> None:
                entry = {"event": type(event).__name__, "time": round(time.time(), 3)} | asdict(event)
                log.write(json.dumps(entry, ensure_ascii=False) + "\n")
                log.flush()
                emit(event)

            trainer = Trainer(task, self.recipe.training, self.recipe.budget, self.work, record, should_stop)
            return trainer.run()

    def write_bundle(self, prepared: Prepared, languages: tuple[str | None, str | None]) -> Bundle:
        """Make the best weights the model of the directory."""
        best, _ = Trainer.best_store(self.work).load_newest()
        assert best is not None, "a complete run has validated at least once"
        config = BundleConfig(
            architecture=asdict(self.recipe.config(prepared.tokenizer.size)),
            source_language=languages[0],
            target_language=languages[1],
        )
        scores = {"dev": best.values["scores"] | {"decoding": "greedy"}, "step": best.step}
        card = _card(self.directory.name, prepared, best.values["scores"], languages)
        page = training_page(self.directory.name, self.directory / "log.jsonl")
        (self.directory / "training.html").write_text(page, encoding="utf-8")
        return Bundle.write(self.directory, config, best.tensors, prepared.tokenizer, scores, card)

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


def _card(name: str, prepared: Prepared, scores: dict[str, float], languages: tuple[str | None, str | None]) -> str:
    direction = " → ".join(language or "?" for language in languages)
    options = DecodingOptions()
    return f"""# {name}

A translation model, {direction}, trained with transduce.

- Trained on {len(prepared.train):,} pairs, measured on {len(prepared.dev):,} pairs that it has not seen.
- Dev set, greedy: BLEU {scores["bleu"]:.1f}, chrF {scores["chrf"]:.1f}, perplexity {scores["perplexity"]:.2f}.
- Decodes with beam {options.beam} and length penalty {options.length_penalty} {options.alpha} unless told otherwise.
- The recipe is in `run/recipe.yaml`, the history in `log.jsonl`.

State here where the text came from and under which licence.
"""
