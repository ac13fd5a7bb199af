"""The models of a service: loaded once, chosen by name or by languages."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from transduce.bundle import Bundle, find_model
from transduce.decoding import DecodingOptions
from transduce.errors import ConfigError, nearest
from transduce.serve.limits import Refusal
from transduce.text.languages import Direction, same_language
from transduce.translator import Translator

__all__ = ["ServedModel", "ServedModels"]


@dataclass(frozen=True)
class ServedModel:
    """A model with a name, and the languages it is asked for by."""

    name: str
    translator: Translator
    direction: Direction

    @property
    def source(self) -> str | None:
        """The language it reads, where it is known."""
        return self.direction.source

    @property
    def targets(self) -> list[str]:
        """The languages it writes, its usual one first."""
        chosen = self.translator.bundle.config.target_languages
        return chosen or ([self.direction.target] if self.direction.target else [])

    @property
    def searches(self) -> bool:
        """Whether it finds several hypotheses, if it is not asked for another beam."""
        return bool(self.translator.bundle.config.decoding.get("beam", DecodingOptions().beam) > 1)

    def reads(self, source: str | None) -> bool:
        """Whether it is for texts in this language, whatever that is called; None is any."""
        return source is None or (self.source is not None and same_language(source, [self.source]) is not None)

    def writes(self, target: str | None) -> str | None:
        """The model's own code of a language to translate into, or of its usual one; None if it has none such."""
        return same_language(target, self.targets) if target is not None else next(iter(self.targets), None)

    def to(self, target: str | None) -> str | None:
        """What the translator is told: nothing, where the model has one language only."""
        return target if self.translator.bundle.config.target_languages else None

    @cached_property
    def description(self) -> dict[str, Any]:
        """What people want to know before they use it."""
        return {
            "name": self.name,
            "source": self.source,
            "targets": self.targets,
            "card": _read(self.translator.path / "README.md"),
            "parameters": _parameters(self.translator.bundle),
            "scores": self.translator.bundle.scores() or None,
        }

    @classmethod
    def load(cls, model: str, languages: Direction, workers: int) -> ServedModel:
        """Load a model that is given as a directory, as the name of a built-in one, or with a name: NAME=DIRECTORY."""
        name, _, path = ("", "", model) if Path(model).exists() else model.rpartition("=")
        bundle = Bundle.open(find_model(path))
        config = bundle.config
        direction = Direction(config.source_language or languages.source, config.target_language or languages.target)
        return cls(name or Path(path).resolve().name, _translator(bundle, workers), direction)


class ServedModels(Sequence[ServedModel]):
    """All models of a service; where several translate between the same languages, the first is asked."""

    def __init__(self, models: Sequence[ServedModel]) -> None:
        names = [model.name for model in models]
        for name in names:
            if names.count(name) > 1:
                raise ConfigError(f"two models are called {name!r}.", remedy="Give one another name: NAME=DIRECTORY.")
        self._models = list(models)

    @classmethod
    def load(cls, models: Sequence[str], languages: Direction, workers: int, back: bool = False) -> ServedModels:
        """Load models; `languages` are for those that do not say theirs.

        With `back`, of two that lead there and back each has a say in what the other writes.
        """
        loaded = cls([ServedModel.load(model, languages, workers) for model in models])
        if back:
            loaded._ask_back()
        return loaded

    def _ask_back(self) -> None:
        for model in self:
            if (other := self._way_back(model)) is not None and model.searches:
                model.translator.ask_back(other.translator)
        if all(model.translator.back is None for model in self):
            raise ConfigError(
                "--back: no model leads back from where another leads.",
                remedy="Serve models of both directions, such as en-twi twi-en, that search with a beam.",
            )

    def _way_back(self, model: ServedModel) -> ServedModel | None:
        """The first model that leads back from the one language that this one writes."""
        if len(model.targets) != 1 or model.source is None:
            return None
        return next((other for other in self if other.reads(model.targets[0]) and other.writes(model.source)), None)

    def __len__(self) -> int:
        return len(self._models)

    def __getitem__(self, index: Any) -> Any:
        return self._models[index]

    def __iter__(self) -> Iterator[ServedModel]:
        return iter(self._models)

    @property
    def sources(self) -> list[str]:
        """Languages to translate from."""
        return list(dict.fromkeys(model.source for model in self if model.source))

    @property
    def targets(self) -> list[str]:
        """Languages to translate into."""
        return list(dict.fromkeys(target for model in self for target in model.targets))

    def targets_of(self, source: str) -> list[str]:
        """Languages to translate this one into."""
        return list(dict.fromkeys(target for model in self if model.reads(source) for target in model.targets))

    def choose(
        self, name: str | None = None, source: str | None = None, target: str | None = None
    ) -> tuple[ServedModel, str | None]:
        """The model to ask, and the language to ask it for; refused if there is none."""
        if name is not None and name not in [model.name for model in self]:
            raise Refusal(404, "model", f"There is no model {_shown(name)}. {nearest(name, _names(self))}")
        fitting = [
            model
            for model in self
            if name in (None, model.name)
            and model.reads(source)
            and (target is None or model.writes(target) is not None)
        ]
        if fitting:
            return fitting[0], fitting[0].writes(target)
        pairs = [f"{model.source}-{target}" for model in self for target in model.targets if model.source]
        asked = f"from {_shown(source or 'any language')} into {_shown(target or 'any language')}"
        which = f"The model {_shown(name)} does not translate" if name else "No model translates"
        raise Refusal(404, "model", f"{which} {asked}. There is: {', '.join(dict.fromkeys(pairs)) or 'none'}.")


def _translator(bundle: Bundle, workers: int) -> Translator:
    bundle.require("translation", "text-to-text")
    compiled = bundle.path / "ctranslate2"
    if not compiled.is_dir():
        return Translator(bundle)
    from transduce.engines.ctranslate2_engine import CTranslate2Engine

    # Only rare requests need PyTorch: what the engine cannot do itself waits for the translator's.
    holder: list[Translator] = []
    engine = CTranslate2Engine(
        compiled,
        bundle.vocabularies(),
        lambda: holder[0].torch_engine,
        workers=workers,
        hurried=True,
        alone=not bundle.has_weights,
    )
    holder.append(Translator(bundle, engine))
    return holder[0]


def _names(models: ServedModels) -> list[str]:
    return [model.name for model in models]


def _shown(name: str) -> str:
    """What a caller wrote, short enough to repeat."""
    return repr(name if len(name) <= 40 else name[:39] + "…")


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _parameters(bundle: Bundle) -> int:
    """The number of weights, read off the header of their file."""
    if not bundle.has_weights:
        from transduce.engines.compiled_file import MODEL, CompiledFile

        return CompiledFile.read(bundle.path / "ctranslate2" / MODEL).parameters
    with (bundle.path / "model.safetensors").open("rb") as file:
        header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
    sizes = (entry["shape"] for name, entry in header.items() if name != "__metadata__")
    return sum(map(math.prod, sizes))
