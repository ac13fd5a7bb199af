"""The models at hand, without loading any: those that come with transduce, those in a directory, those for a pair."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transduce.bundle import Bundle, builtin_folder, builtin_models
from transduce.errors import ConfigError, InputError, nearest
from transduce.text.languages import language_code, same_language

__all__ = ["ListedModel", "builtin_list", "model_between", "models_in"]

MEASURED = ("test", "dev")
"""Parts of scores.json that hold scores, the better one first."""


@dataclass(frozen=True)
class ListedModel:
    """What is known of a model without loading it."""

    name: str
    bundle: Bundle
    builtin: bool = False

    @property
    def source(self) -> str | None:
        """The language it reads, where it is known."""
        return self.bundle.config.source_language

    @property
    def targets(self) -> list[str]:
        """The languages it writes, its usual one first."""
        target = self.bundle.config.target_language
        return self.bundle.config.target_languages or ([target] if target else [])

    @property
    def pairs(self) -> list[str]:
        """From which language into which, such as "en-de"."""
        return [f"{self.source}-{target}" for target in self.targets] if self.source else []

    def translates(self, source: str | None, target: str | None) -> bool:
        """Whether it is for these languages, whatever they are called; None is any."""
        reads = source is None or (self.source is not None and same_language(source, [self.source]) is not None)
        return reads and (target is None or same_language(target, self.targets) is not None)

    @cached_property
    def scores(self) -> dict[str, float]:
        """What it was measured at, by metric: on its test set, or on its dev set if that is all there is."""
        return {
            name: value
            for name, value in self._measured[1].items()
            if name in ("bleu", "chrf", "accuracy", "f1", "perplexity") and isinstance(value, int | float)
        }

    @property
    def measured_on(self) -> str | None:
        """Which part of its data the scores are of: test or dev."""
        return self._measured[0] if self.scores else None

    @cached_property
    def megabytes(self) -> float:
        """The size of its files, without those of its training."""
        run = self.bundle.path / "run"
        files = (path for path in self.bundle.path.rglob("*") if run not in path.parents and path.is_file())
        return sum(path.stat().st_size for path in files) / 1e6

    @cached_property
    def _measured(self) -> tuple[str, dict[str, Any]]:
        found = self.bundle.scores()
        parts = ((name, found[name]) for name in MEASURED if isinstance(found.get(name), dict))
        return next(parts, ("", {}))

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "name": self.name,
            "builtin": self.builtin,
            "path": str(self.bundle.path),
            "task": self.bundle.config.task,
            "source": self.source,
            "targets": self.targets,
            "measured_on": self.measured_on,
            "scores": self.scores,
            "megabytes": round(self.megabytes, 2),
            "licence": self.bundle.config.licence,
        }


def builtin_list() -> list[ListedModel]:
    """The models that come with transduce."""
    return [ListedModel(name, Bundle.open(builtin_folder() / name), builtin=True) for name in builtin_models()]


def models_in(folder: Path) -> Iterator[Path]:
    """The model directories of a folder, by name; the folder itself if it is one."""
    if not folder.is_dir():
        raise InputError("there is no such directory.", where=str(folder), remedy="Give one that holds models.")
    if (folder / "config.json").is_file():
        yield folder
        return
    yield from sorted(path for path in folder.iterdir() if (path / "config.json").is_file())


def model_between(source: str | None, target: str | None) -> ListedModel:
    """The built-in model that translates from one language into another; either may be left out if the other is enough.

    Languages are codes or English names: "twi", "ak" and "Twi" are the same.
    """
    known = builtin_list()
    fitting = [model for model in known if model.translates(source, target)]
    if len(fitting) == 1:
        return fitting[0]
    asked = f"from {source or 'any language'} into {target or 'any language'}"
    if fitting:
        names = ", ".join(model.name for model in fitting)
        missing = "the language that the text is in" if source is None else "the language to translate into"
        remedy = (
            "Choose one by its name." if source and target else f"Say {missing} as well, or choose one by its name."
        )
        raise ConfigError(f"several models translate {asked}: {names}.", remedy=remedy)
    pairs = [pair for model in known for pair in model.pairs]
    wanted = "-".join(language_code(name) for name in (source, target) if name)
    raise ConfigError(f"no built-in model translates {asked}.", remedy=nearest(wanted, pairs))
