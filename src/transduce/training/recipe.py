"""A recipe: everything that decides what a training run does, as typed models over YAML."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, Field, ValidationError

from transduce.bundle import TaskName
from transduce.errors import ConfigError, nearest
from transduce.model.config import TransformerConfig
from transduce.model.family import Config, Network, config_class
from transduce.model.vision import VisionConfig
from transduce.text.tokenizer import check_protected
from transduce.training.recipe_parts import (
    Budget,
    DataRecipe,
    DecodingRecipe,
    Objective,
    RecipePart,
    TokenizerRecipe,
    TrainingRecipe,
)

__all__ = ["Budget", "DataRecipe", "DecodingRecipe", "Objective", "Recipe", "TokenizerRecipe", "TrainingRecipe"]

NOT_SETTINGS = {"vocab_size", "target_vocab_size", "head", "labels", "height", "width", "channels"}
"""Fields of the model that come from the data or the task."""
NETWORKS: dict[str, Network] = {
    "language-model": "decoder-only",
    "masked-language-model": "encoder-only",
    "classification": "encoder-only",
    "tagging": "encoder-only",
    "image-classification": "vision",
}
"""What each task is learned by; those that are not here turn one sequence into another, and may choose."""
METRICS = {
    "language-model": "loss",
    "masked-language-model": "loss",
    "classification": "accuracy",
    "tagging": "accuracy",
    "image-classification": "accuracy",
    "parsing": "f1",
}
"""What decides which weights are best; BLEU for those that are not here."""
LABELLED = ("classification", "tagging", "image-classification")
HEADS = {"masked-language-model": "masked", "classification": "sentence", "tagging": "token"}


class Recipe(RecipePart):
    """Everything that decides what a run does."""

    task: TaskName = "translation"
    """What is learned."""
    network: Literal["transformer", "recurrent"] = "transformer"
    """What learns to turn one text into another: the paper's network, or the recurrent one that it replaced."""
    objective: Objective = Objective()
    """What is asked of texts that come without an answer."""
    model: dict[str, Any] = Field(default_factory=dict)
    """Fields of TransformerConfig that differ from the paper's base model."""
    data: DataRecipe = DataRecipe()
    """What is learned from besides the pairs as they are."""
    tokenizer: TokenizerRecipe = TokenizerRecipe()
    """How text becomes tokens."""
    training: TrainingRecipe = TrainingRecipe()
    """How the weights are learned."""
    decoding: DecodingRecipe = DecodingRecipe()
    """How the model searches for a translation unless told otherwise."""
    budget: Budget = Budget()
    """When to stop."""

    @classmethod
    def load(cls, path: Path) -> Recipe:
        """Read a YAML file."""
        try:
            values = yaml.safe_load(path.read_text(encoding="utf-8")) or {}
        except UnicodeDecodeError as error:
            raise ConfigError("not UTF-8.", where=str(path), remedy="Save it as UTF-8.") from error
        except RecursionError as error:
            raise ConfigError("nested too deep to be a recipe.", where=str(path)) from error
        except yaml.YAMLError as error:
            raise ConfigError(f"not readable as YAML: {error}", where=str(path)) from error
        if not isinstance(values, dict):
            raise ConfigError(
                "a recipe is a set of settings with values, such as training: {warmup: 400}.", where=str(path)
            )
        return cls.of(values, where=str(path))

    @classmethod
    def of(cls, values: dict[str, Any], where: str | None = None) -> Recipe:
        """Make a recipe of plain values, naming what is wrong with them."""
        try:
            recipe = cls.model_validate(values)
        except ValidationError as error:
            raise _explained(error, where) from error
        if recipe.tokenizer.dropout and recipe.tokenizer.kind != "bpe":
            raise ConfigError(
                f"tokenizer.dropout={recipe.tokenizer.dropout} needs merges to leave out.",
                where=where,
                remedy="Use tokenizer.kind=bpe, or tokenizer.dropout=0.",
            )
        for name in NOT_SETTINGS & recipe.model.keys():
            raise ConfigError(
                f"'model.{name}' is not a setting: it follows from the data.",
                where=where,
                remedy="Set tokenizer.vocab_size, and tokenizer.shared=false for a vocabulary each, instead.",
            )
        recipe._check_task(where)
        if not recipe.tokenizer.shared and recipe.model.get("tying") == "all":
            raise ConfigError(
                "model.tying=all is one table for both sides, but tokenizer.shared=false is a vocabulary each.",
                where=where,
                remedy="Use model.tying=target, or tokenizer.shared=true.",
            )
        try:
            check_protected(recipe.tokenizer.protected)
            size = recipe.tokenizer.vocab_size  # says now what would fail after an hour of preparation
            shared = recipe.tokenizer.shared or recipe.task in NETWORKS
            of_data: dict[str, Any] = {"labels": 2} if recipe.task in LABELLED else {}
            if recipe.task == "image-classification":  # any picture that the patches could be cut from
                side = recipe.model.get("patch", VisionConfig.patch)
                of_data |= {"height": side, "width": side} if isinstance(side, int) and side > 0 else {}
            recipe._check_context(recipe.config(size, None if shared else size, **of_data))
        except ConfigError as error:
            raise ConfigError(error.what, where=where, remedy=error.remedy) from error
        return recipe

    def shaped_as(self, network: str, architecture: dict[str, Any]) -> Recipe:
        """The recipe with the shape of a model to start from; how strongly it drops out stays the recipe's own."""
        known = config_class(self.family).__dataclass_fields__
        shape = {name: value for name, value in architecture.items() if name in known and name not in NOT_SETTINGS}
        kept = {name: value for name, value in self.model.items() if "dropout" in name or name == "patch"}
        defaults = {name: value for name, value in shape.items() if value != known[name].default}
        defaults = {name: value for name, value in defaults.items() if "dropout" not in name}
        if network != self.family and self.network == "transformer":  # only one of its stacks is known
            one = "decoder_layers" if network == "decoder-only" else "encoder_layers"
            other = {"encoder_layers", "decoder_layers"} - {one}
            defaults |= {name: self.model.get(name, shape[one]) for name in other if name in known}
        return self.of(self.model_dump() | {"model": defaults | kept})

    def with_overrides(self, overrides: list[str]) -> Recipe:
        """The recipe with `key=value` settings changed, such as `training.warmup=400` or `model.d_model=128`."""
        values = self.model_dump()
        for override in overrides:
            key, equals, text = override.partition("=")
            if not equals:
                raise ConfigError(f"{override!r} is not a setting.", remedy="Write key=value: training.warmup=400.")
            *path, last = key.split(".")
            place: Any = values
            for part in path:
                place = place.get(part) if isinstance(place, dict) else None
            if not isinstance(place, dict) or (not path and key not in ("task", "network")):
                known = _known_keys()
                raise ConfigError(f"{key!r} is not a setting.", remedy=nearest(key, known))
            try:
                place[last] = yaml.safe_load(text)
            except yaml.YAMLError as error:
                raise ConfigError(f"{override!r} has no readable value.", remedy="Quote it.") from error
        return self.of(values)

    def check_budget(self) -> None:
        """Say what the schedule needs of the budget: apart from the rest, for the command line may still set it."""
        if self.training.schedule == "cosine" and self.budget.steps is None:
            raise ConfigError(
                "training.schedule=cosine falls to the last step, and no number of steps is set.",
                remedy="Give --steps (or budget.steps), or use training.schedule=inverse_sqrt.",
            )

    @property
    def family(self) -> Network:
        """The network that learns the task."""
        return NETWORKS.get(self.task, self.network)

    @property
    def learns_from_examples(self) -> bool:
        """Whether its data is anything else than pairs of texts."""
        return self.task in NETWORKS or self.objective.span_corruption

    @property
    def metric(self) -> str:
        """What decides which weights are best."""
        if self.training.metric != "auto":
            return self.training.metric
        return "loss" if self.objective.span_corruption else METRICS.get(self.task, "bleu")

    def config(self, vocab_size: int, target_vocab_size: int | None = None, **of_data: Any) -> Config:
        """The model that the recipe describes; the second size is that of a target vocabulary of its own.

        `of_data` are fields that follow from the data, such as the number of labels or the size of pictures.
        """
        apart = {} if target_vocab_size is None else {"target_vocab_size": target_vocab_size, "tying": "target"}
        if self.task in HEADS:
            apart["head"] = HEADS[self.task]
        return config_class(self.family).base(vocab_size, **(apart | self.model | of_data))

    def _check_context(self, config: Config) -> None:
        """What is read at once must have places."""
        reads = self.learns_from_examples and self.task != "image-classification"
        if (
            reads
            and isinstance(config, TransformerConfig)
            and config.positions == "learned"
            and config.max_length < self.objective.context
        ):
            raise ConfigError(
                f"model.max_length={config.max_length} has no place for the {self.objective.context} tokens of "
                "objective.context.",
                remedy=f"Use model.max_length={self.objective.context}, or a smaller objective.context.",
            )

    def _check_task(self, where: str | None) -> None:
        """Settings that mean nothing for the task are mistakes."""
        if self.network == "recurrent" and self.task in NETWORKS:
            raise ConfigError(
                f"network=recurrent turns one text into another; {self.task} is learned otherwise.",
                where=where,
                remedy="Leave network out, or use task=translation.",
            )
        if self.objective.span_corruption and self.task != "text-to-text":
            raise ConfigError(
                f"objective.span_corruption means nothing for {self.task}.",
                where=where,
                remedy="Use task=text-to-text.",
            )
        for name, unset in (("language_tags", False), ("shared", True), ("split_marks", True)):
            if self.learns_from_examples and getattr(self.tokenizer, name) is not unset:
                raise ConfigError(
                    f"tokenizer.{name} is for pairs of texts and means nothing here.",
                    where=where,
                    remedy="Leave it out.",
                )
        if self.data.variants and (self.learns_from_examples or self.task == "parsing"):
            raise ConfigError(
                f"data.variants are made of sentences and their translations: they mean nothing for {self.task}.",
                where=where,
                remedy="Leave it out.",
            )
        usual = METRICS.get(self.task, "bleu")
        measured = ("bleu", "chrf", "loss") if usual == "bleu" else tuple(dict.fromkeys((usual, "loss")))
        if self.metric not in measured:
            raise ConfigError(
                f"training.metric={self.metric} is not measured for {self.task}.",
                where=where,
                remedy=nearest(self.metric, measured),
            )

    def dump(self) -> str:
        """As YAML; reading it gives the same recipe."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


def _known_keys() -> list[str]:
    parts: dict[str, type[BaseModel]] = {
        "data": DataRecipe,
        "tokenizer": TokenizerRecipe,
        "objective": Objective,
        "training": TrainingRecipe,
        "decoding": DecodingRecipe,
        "budget": Budget,
    }
    settings = [f"{name}.{field}" for name, part in parts.items() for field in part.model_fields]
    shape = [field for field in TransformerConfig.__dataclass_fields__ if field not in NOT_SETTINGS]
    return ["task", "network", *settings, *(f"model.{field}" for field in shape)]


def _explained(error: ValidationError, where: str | None) -> ConfigError:
    """The first of pydantic's complaints in a user's words."""
    first, *others = error.errors()
    key = _setting(first)
    if isinstance(first["input"], str):  # of a number or a word, the word was meant
        words = (other for other in others if _setting(other) == key and other["type"] == "literal_error")
        first = next(words, first)
    if first["type"] == "extra_forbidden":
        part = key.split(".")[0]
        known = [name for name in _known_keys() if name.startswith(f"{part}.")] or list(Recipe.model_fields)
        return ConfigError(f"{key!r} is not a setting.", where=where, remedy=nearest(key, known))
    remedy = f"{first['msg']}."
    if first["type"] == "literal_error":
        remedy = nearest(str(first["input"]), re.findall(r"'([^']*)'", first["ctx"]["expected"]))
    return ConfigError(f"{key}={first['input']!r} cannot work.", where=where, remedy=remedy)


def _setting(complaint: Mapping[str, Any]) -> str:
    """The setting that is complained of, without which of its kinds of value did not fit."""
    key = ".".join(str(part) for part in complaint["loc"])
    return next((name for name in _known_keys() if key.startswith(f"{name}.")), key)
