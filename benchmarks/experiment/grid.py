"""The grid file: what is trained, on what, how often, for how long, and how it is measured."""

from __future__ import annotations

import itertools
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from hashlib import blake2b
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from transduce.errors import ConfigError, nearest
from transduce.text.languages import Direction
from transduce.training.recipe import Budget, Recipe
from transduce.training.recipes import find_recipe

__all__ = ["Grid", "Measuring", "Run", "load_grid", "short"]

EXAMPLE = "such as variants: {base: [], more dropout: [model.dropout=0.3]}"


class _Part(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False, use_attribute_docstrings=True)


class Measuring(_Part):
    """How every run is measured when it is complete."""

    beam: int = Field(default=4, ge=1)
    """Hypotheses kept while searching."""
    alpha: float = 0.6
    """Of the length penalty."""
    engine: Literal["auto", "torch", "ctranslate2"] = "auto"
    """As `Translator.load` takes it: auto is CTranslate2 in int8 where the model can be compiled."""
    tokenize: str = "13a"
    """How BLEU finds words; none for text that is tokenised already, as is the custom with Multi30k."""
    lowercase: bool = False
    """Whether case is ignored."""


class Grid(_Part):
    """An experiment on one corpus."""

    corpus: str | tuple[str, str]
    """A built-in corpus by name, or two files."""
    pairs: int | None = Field(default=None, ge=10)
    """Train on so many pairs only, drawn the same way each time; the fewer are among the more."""
    dev: tuple[str, str] | None = None
    """Two files; a built-in corpus has its own."""
    test: tuple[str, str] | None = None
    """Two files; a built-in corpus has its own, if any."""
    languages: str | None = None
    """From which into which, if the files' names do not say: en-de."""
    recipe: str
    """What all variants start from: a built-in recipe by name, or a YAML file."""
    settings: tuple[str, ...] = ()
    """Settings of all variants, as key=value."""
    variants: dict[str, tuple[str, ...]] = Field(default_factory=dict)
    """By name, the settings in which each differs; the first is what the others are compared with."""
    product: dict[str, tuple[Any, ...]] = Field(default_factory=dict)
    """Instead of variants, values of each setting: all combinations are run, that of the first values first."""
    seeds: tuple[int, ...] = (1,)
    """Each variant is run once with each."""
    budget: Budget
    """How long each run is."""
    measure: Measuring = Measuring()
    """How each is measured."""

    def runs(self) -> list[Run]:
        """All runs, seed by seed, so that every variant has a result early on."""
        return [Run(self, name, tuple(settings), seed) for seed in self.seeds for name, settings in self.all_variants()]

    def all_variants(self) -> list[tuple[str, tuple[str, ...]]]:
        """Names and settings, the one to compare with first."""
        if self.variants:
            return list(self.variants.items())
        keys = list(self.product)
        combinations = itertools.product(*self.product.values())
        pairs = ([f"{key}={json.dumps(value)}" for key, value in zip(keys, row, strict=True)] for row in combinations)
        return [(" ".join(map(short, settings)), tuple(settings)) for settings in pairs]

    def with_budget(self, **budget: float | None) -> Grid:
        """The same experiment with another budget, if any is given."""
        given = {key: value for key, value in budget.items() if value is not None}
        return self.model_copy(update={"budget": Budget(**given)}) if given else self


@dataclass(frozen=True)
class Run:
    """One variant with one seed."""

    grid: Grid = field(compare=False, repr=False)
    variant: str
    settings: tuple[str, ...]
    """In which it differs from the others."""
    seed: int

    @property
    def name(self) -> str:
        """Of its directory."""
        return f"{_file_name(self.variant)}-{self.seed}"

    @cached_property
    def recipe(self) -> Recipe:
        """As it is trained."""
        return find_recipe(self.grid.recipe).with_overrides(self.overrides)

    @property
    def overrides(self) -> list[str]:
        """What the recipe is changed by: the grid's budget and settings, the variant's own, and the seed."""
        budget = [f"budget.{key}={json.dumps(value)}" for key, value in self.grid.budget.model_dump().items()]
        return [*budget, *self.grid.settings, *self.settings, f"training.seed={self.seed}"]

    @cached_property
    def fingerprint(self) -> str:
        """Of everything that the grid says of its result."""
        apart = {"variants", "product", "seeds", "recipe", "settings", "budget"}
        says = [self.grid.model_dump(exclude=apart), self.recipe.model_dump()]
        return blake2b(json.dumps(says, sort_keys=True).encode(), digest_size=8).hexdigest()


def load_grid(path: Path, **budget: float | None) -> Grid:
    """Read a grid file and check that every run of it can be begun; `budget` replaces the file's own."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"not readable as YAML: {error}", where=str(path)) from error
    if not isinstance(values, dict):
        raise ConfigError("a grid is a set of settings with values.", where=str(path), remedy=EXAMPLE)
    try:
        grid = Grid.model_validate(_as_lists(values)).with_budget(**budget)
    except ValidationError as error:
        raise _explained(error, path) from error
    try:
        _check(grid)
    except ConfigError as error:
        raise ConfigError(error.what, where=error.where or str(path), remedy=error.remedy) from error
    return grid


def _as_lists(values: Mapping[str, Any]) -> dict[str, Any]:
    """What may be written shorter: 3 for three seeds, nothing for no settings, one setting without a list."""
    found = dict(values)
    if isinstance(seeds := found.get("seeds"), int):
        found["seeds"] = list(range(1, seeds + 1))
    if isinstance(variants := found.get("variants"), dict):
        found["variants"] = {
            str(name): [settings] if isinstance(settings, str) else settings or []
            for name, settings in variants.items()
        }
    return found


def _check(grid: Grid) -> None:
    if bool(grid.variants) == bool(grid.product):
        raise ConfigError("a grid has either variants or a product.", remedy=f"Give one of them, {EXAMPLE}.")
    if not grid.seeds or len(set(grid.seeds)) < len(grid.seeds):
        raise ConfigError(f"seeds: {list(grid.seeds)} cannot work.", remedy="Give different ones, such as [1, 2, 3].")
    if not isinstance(grid.corpus, str) and grid.dev is None:
        raise ConfigError("the files to measure on are missing.", remedy="Add dev: [dev.en, dev.de].")
    if grid.languages is not None:
        Direction.parse(grid.languages)
    if not any(grid.budget.model_dump().values()):
        raise ConfigError("the budget is empty.", remedy="Add budget: {minutes: 10}, or steps, or epochs.")
    names: dict[str, str] = {}
    for variant, _ in grid.all_variants():
        if names.setdefault(name := _file_name(variant), variant) != variant:
            raise ConfigError(f"{variant!r} and {names[name]!r} would share a directory.", remedy="Rename one.")
    for run in grid.runs():
        recipe = run.recipe
        recipe.check_budget()
        if recipe.task not in ("translation", "text-to-text") or recipe.learns_from_examples:
            raise ConfigError(f"{run.variant}: {recipe.task} is not translation.", remedy="Choose another recipe.")


def short(setting: str) -> str:
    """A setting without its part: dropout=0.3 of model.dropout=0.3."""
    key, equals, value = setting.partition("=")
    return key.rpartition(".")[2] + equals + value


def _file_name(variant: str) -> str:
    return re.sub(r"[^a-z0-9.]+", "-", variant.lower()).strip("-.") or "variant"


def _explained(error: ValidationError, path: Path) -> ConfigError:
    first = error.errors()[0]
    *parents, last = [str(part) for part in first["loc"]]
    key = ".".join([*parents, last])
    if first["type"] == "extra_forbidden":
        part = {"measure": Measuring, "budget": Budget}.get(parents[0] if parents else "", Grid)
        return ConfigError(f"{key!r} is not known.", where=str(path), remedy=nearest(last, part.model_fields))
    if first["type"] == "missing":
        return ConfigError(f"{key!r} is missing.", where=str(path), remedy="benchmarks/grids has examples.")
    return ConfigError(f"{key}={first['input']!r} cannot work.", where=str(path), remedy=f"{first['msg']}.")
