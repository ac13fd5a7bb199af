"""The recipes that come with transduce, and which of them suits a corpus."""

from __future__ import annotations

import os
from importlib.resources import files
from pathlib import Path

from transduce.errors import InputError, nearest
from transduce.training.recipe import Recipe

__all__ = ["find_recipe", "recipe_for", "recipe_names"]

BY_SIZE = (
    (20_000, "tiny-corpus", "a small model and a short run, before it learns by heart"),
    (100_000, "small-corpus", "a small model, and dropout against learning by heart"),
    (1_000_000, "medium-corpus", "a model that a laptop trains in an hour"),
)
"""Of how many pairs a corpus has fewer, its recipe, and why."""
LARGEST = "large-corpus", "a model with room for them, which takes hours"


def recipe_names() -> list[str]:
    """The built-in recipes."""
    return sorted(path.stem for path in _folder().glob("*.yaml"))


def find_recipe(name: str) -> Recipe:
    """A built-in recipe by name (`classification`, or as its file, `recipes/classification.yaml`), or a YAML file."""
    if name in recipe_names():
        return Recipe.load(_folder() / f"{name}.yaml")
    if not os.path.isfile(name):  # which takes a name that is too long for a missing one
        if name.startswith("recipes/") and Path(name).stem in recipe_names():
            return Recipe.load(_folder() / f"{Path(name).stem}.yaml")
        raise InputError(f"there is no recipe {name!r}.", remedy=nearest(name, recipe_names()))
    return Recipe.load(Path(name))


def recipe_for(pairs: int) -> tuple[str, str]:
    """The name of the recipe for a corpus of so many pairs, and the reason in words."""
    name, reason = next(((name, why) for limit, name, why in BY_SIZE if pairs < limit), LARGEST)
    return name, f"{pairs:,} pairs: {reason}"


def _folder() -> Path:
    return Path(str(files("transduce.assets"))) / "recipes"
