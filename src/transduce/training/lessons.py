"""Lessons: what a run can learn, each with its data, its model, its task and what to say of the result."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any, Protocol, cast

import numpy as np
import torch
from torch import nn

from transduce.bundle import BundleConfig
from transduce.data.examples import PreparedExamples
from transduce.data.images import Pictures
from transduce.data.prepare import Prepared
from transduce.decoding import DecodingOptions, decode
from transduce.errors import InputError
from transduce.model import Transformer
from transduce.model.decoder_only import LanguageModel
from transduce.model.family import Config, make_network
from transduce.model.vision import VisionConfig
from transduce.model.workers import Workers
from transduce.text import Direction, Vocabularies
from transduce.text.languages import same_language
from transduce.text.numbers import are_kept
from transduce.text.tokenizer import BOS
from transduce.text.trees import Tree
from transduce.training.events import Sample
from transduce.training.ranks import ALONE, Ranks
from transduce.training.recipe import HEADS, Recipe
from transduce.training.task import Task
from transduce.training.tasks.examples import MaskedTexts, NamedTexts, PictureRows, Windows
from transduce.training.tasks.parsing import ParsingTask
from transduce.training.tasks.prediction import Examples, PredictionTask
from transduce.training.tasks.spans import SpanCorruptionTask
from transduce.training.tasks.translation import DevSet, TranslationTask

__all__ = ["ExampleLesson", "Lesson", "PictureLesson", "TranslationLesson"]

PROMPT, CONTINUATION = 24, 60
"""Tokens of the dev set that a language model is shown while it learns, and tokens that it then writes."""


class Lesson(Protocol):
    """What a run learns."""

    @property
    def config(self) -> Config:
        """The shape of its model."""

    @property
    def vocabularies(self) -> Vocabularies | None:
        """Of its texts; None for pictures."""

    def task(self, model: Any, workers: Workers, ranks: Ranks = ALONE) -> Task[Any]:
        """What the loop asks."""

    def described(self) -> BundleConfig:
        """What the model's directory says of it."""

    def card(self, name: str, scores: dict[str, float]) -> str:
        """The model card."""


@dataclass(frozen=True)
class TranslationLesson:
    """Pairs of texts: one is to become the other."""

    prepared: Prepared
    recipe: Recipe
    directions: Sequence[Direction] = (Direction(),)

    @property
    def vocabularies(self) -> Vocabularies:
        """Of both sides."""
        return self.prepared.vocabularies

    @property
    def config(self) -> Config:
        """The shape of its model."""
        target = None if self.vocabularies.shared else self.vocabularies.target.size
        return self.recipe.config(self.vocabularies.source.size, target)

    def task(self, model: Any, workers: Workers, ranks: Ranks = ALONE) -> TranslationTask:
        """Translation of the prepared pairs."""
        prepared = self.prepared
        dev = DevSet(prepared.dev, prepared.dev_sources, prepared.dev_references)
        if self.recipe.task == "parsing":
            words = [source.split(" ") for source in prepared.dev_sources]
            pairs = zip(prepared.dev_references, words, strict=True)
            trees = [Tree.of_symbols(symbols, mine) for symbols, mine in pairs]
            return ParsingTask(model, self.vocabularies, prepared.train, dev, trees, self.recipe, workers, ranks)
        return TranslationTask(model, self.vocabularies, prepared.train, dev, self.recipe, workers, ranks)

    def described(self) -> BundleConfig:
        """Languages, and what the network looks like."""
        languages = _languages(self.directions, self.vocabularies.languages)
        frame = self.vocabularies.source.frame
        if frame is not None and frame.languages:  # the tags are those of the model that it started from
            targets = (same_language(each.target, frame.languages) for each in self.directions if each.target)
            languages["source_language"] = frame.source or languages["source_language"]
            languages["target_language"] = next(filter(None, targets), frame.target)
            languages["target_languages"] = list(frame.languages)
        return BundleConfig(
            architecture=asdict(self.config),
            network=self.recipe.family,
            task=self.recipe.task,
            normalisation=self.vocabularies.normalisation.name,
            keeps_numbers=are_kept(zip(self.prepared.dev_sources, self.prepared.dev_references, strict=True)),
            **self.recipe.decoding.described(),
            **languages,
        )

    def card(self, name: str, scores: dict[str, float]) -> str:
        """What it was trained on and how good it is."""
        if self.recipe.task == "parsing":
            return _card(
                name,
                "Writes the constituents of a sentence as a tree; trained with transduce.",
                f"Trained on {len(self.prepared.train):,} trees, measured on {len(self.prepared.dev):,} others.",
                f"Dev set, greedy: F1 {scores['f1']:.1f}.",
            )
        described = (f"{each.source or '?'} → {each.target or '?'}" for each in self.directions)
        direction = ", ".join(dict.fromkeys(described))
        search = self.recipe.decoding
        chosen = "the length penalty that suited the dev set best (config.json)"
        penalty = chosen if search.alpha == "auto" else f"length penalty gnmt {search.alpha}"
        found = f"with beam {search.beam} and {penalty}" if search.beam > 1 else "greedily"
        return _card(
            name,
            f"A translation model, {direction}, trained with transduce.",
            f"Trained on {len(self.prepared.train):,} pairs, measured on {len(self.prepared.dev):,} pairs that it has "
            "not seen.",
            f"Dev set, greedy: BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f}, perplexity "
            f"{scores['perplexity']:.2f}.",
            f"Decodes {found} unless told otherwise"
            + ("; of the hypotheses, it takes the one that the others agree with most." if search.mbr else "."),
        )


@dataclass(frozen=True)
class ExampleLesson:
    """Texts with labels, with tags, or as they are."""

    prepared: PreparedExamples
    recipe: Recipe

    @property
    def vocabularies(self) -> Vocabularies:
        """Of the texts."""
        return Vocabularies(self.prepared.vocabulary, self.prepared.vocabulary)

    @property
    def config(self) -> Config:
        """The shape of its model."""
        labels = {"labels": len(self.prepared.labels)} if self.prepared.labels else {}
        return self.recipe.config(self.prepared.vocabulary.size, **labels)

    def task(self, model: Any, workers: Workers, ranks: Ranks = ALONE) -> Task[Any]:
        """What the recipe's task asks of the texts."""
        if self.recipe.objective.span_corruption:
            prepared = self.prepared
            network = cast(Transformer, model)
            data = prepared.train, prepared.dev
            return SpanCorruptionTask(network, self.vocabularies, *data, self.recipe, workers, ranks)
        train, dev = self._examples(next(model.parameters()).device)
        samples = (lambda: self._written(model)) if self.recipe.task == "language-model" else list
        return PredictionTask(model, self.recipe, train, dev, workers, samples, ranks)

    def described(self) -> BundleConfig:
        """Labels, and what the network looks like."""
        return BundleConfig(
            architecture=asdict(self.config),
            network=self.recipe.family,
            task=self.recipe.task,
            labels=self.prepared.labels,
            context=self.recipe.objective.context if self.recipe.task == "language-model" else None,
        )

    def card(self, name: str, scores: dict[str, float]) -> str:
        """What it was trained on and how good it is."""
        train, dev = self.prepared.train, self.prepared.dev
        unit = "tokens" if self.recipe.task == "language-model" else "texts"
        amounts = [each.tokens["source"] if unit == "tokens" else len(each) for each in (train, dev)]
        return _card(
            name,
            f"A model for {self.recipe.task}, trained with transduce.",
            f"Trained on {amounts[0]:,} {unit}, measured on {amounts[1]:,} {unit} that it has not seen.",
            f"Dev set: {', '.join(f'{each} {value:.3f}' for each, value in scores.items())}.",
        )

    def _examples(self, device: torch.device) -> tuple[Examples, Examples]:
        prepared, recipe = self.prepared, self.recipe
        if recipe.task == "language-model":
            one, other = prepared.train, prepared.dev
            context = recipe.objective.context
            return Windows(one, recipe, context, device), Windows(other, recipe, context, device, shuffle=False)
        if recipe.task == "masked-language-model":
            words = prepared.vocabulary
            return (
                MaskedTexts(prepared.train, recipe, words, device),
                MaskedTexts(prepared.dev, recipe, words, device, shuffle=False),
            )
        head: Any = HEADS[recipe.task]
        return (
            NamedTexts(prepared.train, recipe, prepared.vocabulary, head, device),
            NamedTexts(prepared.dev, recipe, prepared.vocabulary, head, device, shuffle=False),
        )

    def _written(self, model: LanguageModel) -> list[Sample]:
        """How the model goes on with the beginning of the dev set."""
        prompt = self.prepared.dev.stream("source", 0, min(PROMPT, self.prepared.dev.tokens["source"])).tolist()
        options = DecodingOptions(
            beam=1, prefix=prompt, max_length_extra=CONTINUATION, suppress=self.prepared.vocabulary.unwritten
        )
        source = torch.tensor([[BOS, *prompt]], device=next(model.parameters()).device)
        written = decode(model, source, options)[0][0].tokens[len(prompt) :]
        shown, continued = (self.prepared.vocabulary.decode(ids) for ids in (prompt, written))
        return [Sample(shown, continued, reference="")]


@dataclass(frozen=True)
class PictureLesson:
    """Pictures with labels."""

    train: Pictures
    dev: Pictures
    recipe: Recipe
    vocabularies: None = None

    @property
    def config(self) -> VisionConfig:
        """The shape of its model."""
        _, height, width, channels = self.train.images.shape
        labels = int(max(self.train.labels.max(), self.dev.labels.max())) + 1
        size = {"height": height, "width": width, "channels": channels}
        return cast(VisionConfig, self.recipe.config(3, labels=labels, **size))

    def task(self, model: Any, workers: Workers, ranks: Ranks = ALONE) -> PredictionTask:
        """To name the pictures."""
        device = next(model.parameters()).device
        train = PictureRows(self.train, self.recipe, self.config, device)
        dev = PictureRows(self.dev, self.recipe, self.config, device, shuffle=False)
        return PredictionTask(model, self.recipe, train, dev, workers, ranks=ranks)

    def described(self) -> BundleConfig:
        """Labels are the numbers that the data has."""
        labels = [str(number) for number in range(self.config.labels)]
        return BundleConfig(
            architecture=asdict(self.config), network="vision", task="image-classification", labels=labels
        )

    def card(self, name: str, scores: dict[str, float]) -> str:
        """What it was trained on and how good it is."""
        height, width = self.train.images.shape[1:3]
        return _card(
            name,
            f"Tells pictures of {height}×{width} apart, trained with transduce.",
            f"Trained on {len(self.train):,} pictures, measured on {len(self.dev):,} that it has not seen.",
            f"Dev set: accuracy {scores['accuracy']:.2f} %.",
        )

    @classmethod
    def held_out(cls, pictures: Pictures, recipe: Recipe, share: float = 0.1) -> PictureLesson:
        """A lesson with a dev set taken from its own pictures, the same one each time."""
        if len(pictures) < 2:
            raise InputError(
                "one picture is too few to train on some and measure on the rest.",
                remedy="Use more, or give a dev set of your own.",
            )
        order = np.random.default_rng(0).permutation(len(pictures))
        count = max(1, round(share * len(pictures)))
        parts = [np.sort(order[count:]), np.sort(order[:count])]
        train, dev = (Pictures(pictures.images[part], pictures.labels[part]) for part in parts)
        return cls(train, dev, recipe)


def new_model(lesson: Lesson, recipe: Recipe) -> nn.Module:
    """The lesson's model, freshly drawn from torch's random generator."""
    return make_network(recipe.family, asdict(lesson.config))


def _languages(directions: Sequence[Direction], tagged: Sequence[str]) -> dict[str, Any]:
    """What a model's description says of languages: a side's only one, or all that have tags, those learned first."""
    sources, targets = (list(dict.fromkeys(filter(None, side))) for side in zip(*directions, strict=True))
    if tagged:
        learned = (same_language(target, tagged) for target in targets)
        targets = list(dict.fromkeys([*filter(None, learned), *tagged]))
    return {
        "source_language": sources[0] if len(sources) == 1 else None,
        "target_language": targets[0] if len(targets) == 1 or tagged else None,
        "target_languages": targets if tagged else [],
    }


def _card(name: str, what: str, *facts: str) -> str:
    lines = [*facts, "The recipe is in `run/recipe.yaml`, the history in `log.jsonl`."]
    listed = "\n".join(f"- {line}" for line in lines)
    return f"# {name}\n\n{what}\n\n{listed}\n\nState here where the data came from and under which licence.\n"
