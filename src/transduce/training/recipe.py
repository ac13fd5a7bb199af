"""A recipe: everything that decides what a training run does, as typed models over YAML."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transduce.errors import ConfigError, nearest
from transduce.model.config import TransformerConfig
from transduce.text.tokenizer import check_protected

__all__ = ["Budget", "Recipe", "TokenizerRecipe", "TrainingRecipe"]

VOCABULARY_SIZES = {"vocab_size", "target_vocab_size"}
"""Fields of the model that come from the tokenizer."""


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class TokenizerRecipe(_Part):
    """How text becomes tokens."""

    vocab_size: int = Field(default=8000, ge=276)
    """Pieces of the vocabulary; a small corpus gets as many as it can bear."""
    shared: bool = True
    """One vocabulary for source and target, as in the paper; if false, one of this size each, which suits languages of
    different scripts."""
    kind: Literal["bpe", "unigram"] = "bpe"
    """SentencePiece's way of learning pieces."""
    dropout: float = Field(default=0.0, ge=0, lt=1)
    """BPE-dropout: the chance of each merge to be left out, anew each time a sentence is seen."""
    protected: list[str] = Field(default_factory=list)
    """Symbols that are never split and come through whole, such as ["<br>", "{name}"]."""
    language_tags: bool = False
    """Put a tag for the target language before each source, so that one model learns several; `--to` chooses."""


class TrainingRecipe(_Part):
    """How the weights are learned."""

    batch_tokens: int = Field(default=4096, ge=16)
    """Tokens of a batch on each side, padding included."""
    accumulate: int = Field(default=1, ge=1)
    """Batches whose gradients are added up for one step."""
    optimizer: Literal["adam", "adamw"] = "adam"
    """Adam as in the paper, or with decoupled weight decay."""
    beta1: float = Field(default=0.9, ge=0, lt=1)
    """β₁ of Adam."""
    beta2: float = Field(default=0.98, ge=0, lt=1)
    """β₂ of Adam."""
    epsilon: float = Field(default=1e-9, gt=0)
    """ε of Adam."""
    weight_decay: float = Field(default=0.0, ge=0)
    """Of AdamW."""
    schedule: Literal["noam", "inverse_sqrt", "cosine"] = "noam"
    """The learning rate: the paper's, the same with a peak of your own, or a cosine down to budget.steps."""
    rate: float = Field(default=1.0, gt=0)
    """Factor on the paper's rate (noam), or the peak (the others)."""
    warmup: int = Field(default=4000, ge=1)
    """Steps to the peak."""
    label_smoothing: float = Field(default=0.1, ge=0, lt=1)
    """ε_ls."""
    r_drop: float = Field(default=0.0, ge=0)
    """Weight of R-Drop (Liang et al., 2021): two passes with other dropout must agree; doubles the cost of a step."""
    word_dropout: float = Field(default=0.0, ge=0, lt=1)
    """The chance of each source token to be replaced by the unknown one."""
    clip: float = Field(default=0.0, ge=0)
    """Largest norm of the gradient of a step; 0 is off, as in the paper."""
    skip_spikes: bool = True
    """Leave out steps whose gradient is ten times the usual while the perplexity is twice that of any recent step."""
    average: Literal["moving", "last", "best", "none"] = "moving"
    """The weights that become the model: a moving average; or the mean of the last (as in the paper) or best few that
    were validated, if it is better than the best of them; or simply the best."""
    average_decay: float = Field(default=0.999, ge=0, lt=1)
    """Of the moving average; 0 keeps the weights themselves."""
    average_count: int = Field(default=5, ge=1)
    """How many are averaged with last and best; the paper takes 5 for its base model, 20 for its big one."""
    validate_every: int = Field(default=1000, ge=1)
    """Steps between validations."""
    checkpoint_every: int = Field(default=500, ge=1)
    """Steps between checkpoints: the most that a power cut can cost."""
    metric: Literal["bleu", "chrf", "loss"] = "bleu"
    """What decides which weights are best, on the dev set."""
    patience: int = Field(default=10, ge=0)
    """Validations without a better score before training ends; 0 is never."""
    compile: bool = False
    """Compile the model with PyTorch's compiler first: minutes that can pay on a GPU (untested), not on a CPU."""
    seed: int = Field(default=1, ge=0)
    """Of everything random: weights, order, dropout, segmentation."""


class Budget(_Part):
    """When to stop; whichever comes first."""

    steps: int | None = Field(default=None, ge=1)
    """Updates of the weights."""
    epochs: int | None = Field(default=None, ge=1)
    """Times the corpus is seen."""
    minutes: float | None = Field(default=None, gt=0)
    """Minutes of training, over all continuations of the run."""


class Recipe(_Part):
    """Everything that decides what a run does."""

    model: dict[str, Any] = Field(default_factory=dict)
    """Fields of TransformerConfig that differ from the paper's base model."""
    tokenizer: TokenizerRecipe = TokenizerRecipe()
    """How text becomes tokens."""
    training: TrainingRecipe = TrainingRecipe()
    """How the weights are learned."""
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
        for name in VOCABULARY_SIZES & recipe.model.keys():
            raise ConfigError(
                f"'model.{name}' is not a setting.",
                where=where,
                remedy="Set tokenizer.vocab_size, and tokenizer.shared=false for a vocabulary each, instead.",
            )
        if not recipe.tokenizer.shared and recipe.model.get("tying") == "all":
            raise ConfigError(
                "model.tying=all is one table for both sides, but tokenizer.shared=false is a vocabulary each.",
                where=where,
                remedy="Use model.tying=target, or tokenizer.shared=true.",
            )
        try:
            check_protected(recipe.tokenizer.protected)
            size = recipe.tokenizer.vocab_size  # says now what would fail after an hour of preparation
            recipe.config(size, None if recipe.tokenizer.shared else size)
        except ConfigError as error:
            raise ConfigError(error.what, where=where, remedy=error.remedy) from error
        return recipe

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
            if not path or not isinstance(place, dict):
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

    def config(self, vocab_size: int, target_vocab_size: int | None = None) -> TransformerConfig:
        """The model that the recipe describes; the second size is that of a target vocabulary of its own."""
        apart = {} if target_vocab_size is None else {"target_vocab_size": target_vocab_size, "tying": "target"}
        return TransformerConfig.base(vocab_size, **(apart | self.model))

    def dump(self) -> str:
        """As YAML; reading it gives the same recipe."""
        return yaml.safe_dump(self.model_dump(), sort_keys=False, allow_unicode=True)


def _known_keys() -> list[str]:
    parts: dict[str, type[BaseModel]] = {"tokenizer": TokenizerRecipe, "training": TrainingRecipe, "budget": Budget}
    settings = [f"{name}.{field}" for name, part in parts.items() for field in part.model_fields]
    shape = [field for field in TransformerConfig.__dataclass_fields__ if field not in VOCABULARY_SIZES]
    return settings + [f"model.{field}" for field in shape]


def _explained(error: ValidationError, where: str | None) -> ConfigError:
    """The first of pydantic's complaints in a user's words."""
    first = error.errors()[0]
    key = ".".join(str(part) for part in first["loc"])
    if first["type"] == "extra_forbidden":
        part = key.split(".")[0]
        known = [name for name in _known_keys() if name.startswith(f"{part}.")] or list(Recipe.model_fields)
        return ConfigError(f"{key!r} is not a setting.", where=where, remedy=nearest(key, known))
    return ConfigError(f"{key}={first['input']!r} cannot work.", where=where, remedy=f"{first['msg']}.")
