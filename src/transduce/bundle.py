"""The model directory: everything that a translation needs, raw text in and raw text out, and no pickle anywhere.

config.json          format version, task, architecture, languages or labels, decoding, confidence; written last
model.safetensors    weights, tied ones once
tokenizer.model      SentencePiece; source.model and target.model where each side has a vocabulary; of pictures, none
scores.json          what it was measured at, with signatures
README.md            model card
ctranslate2/, onnx/  the same model compiled, if it has been
"""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields, replace
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, cast, get_args

from transduce.confidence import Confidence
from transduce.errors import BundleError, ConfigError, InputError, nearest
from transduce.storage import write_aside, write_whole
from transduce.text import NORMALISATION, Normalisation, Vocabularies
from transduce.text.vocabularies import vocabulary_files

if TYPE_CHECKING:
    from torch import Tensor, nn

    from transduce.model import Transformer
    from transduce.model.family import Network

__all__ = [
    "COMMANDS",
    "DEFAULT_MODEL",
    "FORMAT",
    "Bundle",
    "BundleConfig",
    "TaskName",
    "builtin_folder",
    "builtin_models",
    "find_model",
]

TaskName = Literal[
    "translation",
    "text-to-text",
    "parsing",
    "language-model",
    "masked-language-model",
    "classification",
    "tagging",
    "image-classification",
]
COMMANDS: dict[str, str] = {
    "translation": "translate",
    "text-to-text": "translate",
    "parsing": "parse",
    "language-model": "generate",
    "masked-language-model": "fill",
    "classification": "classify",
    "tagging": "classify",
    "image-classification": "classify",
}
"""What a model of each task is used with."""

NETWORKS = ("transformer", "recurrent", "encoder-only", "decoder-only", "vision")
"""Those of `transduce.model.family`, which would import PyTorch."""
COMPILED = ("ctranslate2", "onnx")
"""Folders that hold the model in other tools' formats."""
DEFAULT_MODEL = "en-de"
"""The built-in model that translates where none is asked for."""
FORMAT = 1
"""Raised when older versions of transduce can no longer read what this one writes."""


@dataclass(frozen=True, kw_only=True)
class BundleConfig:
    """What `config.json` says."""

    architecture: dict[str, Any]
    """The fields of the network's configuration, such as TransformerConfig."""
    network: str = "transformer"
    """Which network it is; see `transduce.model.family`."""
    task: TaskName = "translation"
    """What it has learned."""
    labels: list[str] = field(default_factory=list)
    """What it tells apart, if its task is to name things."""
    context: int | None = None
    """Tokens that a language model has read at once while it learned."""
    source_language: str | None = None
    target_language: str | None = None
    """What it translates into unless told otherwise."""
    target_languages: list[str] = field(default_factory=list)
    """Those that a tag before the source chooses from; empty where there is nothing to choose."""
    normalisation: str = NORMALISATION
    """The rules that its texts went through; see `transduce.text.normalise`."""
    decoding: dict[str, Any] = field(default_factory=dict)
    """Decoding options that differ from the defaults."""
    mbr: bool = False
    """Whether it takes, of the hypotheses, the one that the others agree with most, unless told otherwise."""
    keeps_numbers: bool = True
    """Whether the numbers of a source stand in its translation; not where digits become words."""
    confidence: Confidence | None = None
    """What makes a confidence of a translation's signs; None if the model was never calibrated."""
    licence: str | None = None
    """Under which terms the weights may be passed on, such as "CC BY 2.0"; None where nobody has said."""
    format: int = FORMAT


@dataclass(frozen=True)
class Bundle:
    """A model directory that has been found sound."""

    path: Path
    config: BundleConfig

    @classmethod
    def open(cls, path: Path) -> Bundle:
        """Check a directory; weights are not read yet."""
        if not os.path.isfile(path / "config.json"):  # which takes a name that is too long for a missing one
            raise BundleError("there is no model here: config.json is missing.", where=str(path), remedy=_hint(path))
        where = str(path / "config.json")
        try:
            values = json.loads((path / "config.json").read_text(encoding="utf-8"))
            version = values["format"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise BundleError("not a model's description.", where=where, remedy="Copy the model again.") from error
        if not isinstance(version, int) or not 1 <= version <= FORMAT:
            raise BundleError(
                f"the model has format {version!r}; this version of transduce reads up to {FORMAT}.",
                where=where,
                remedy="Update transduce.",
            )
        known = {each.name for each in fields(BundleConfig)}
        for name in values:
            if name not in known:
                raise BundleError(f"{name!r} is not part of a model's description.", where=where)
        if Normalisation.parse(values.get("normalisation")) is None:
            raise BundleError(
                f"the model was trained with normalisation {values.get('normalisation')!r}.",
                where=where,
                remedy=f"This version of transduce knows {NORMALISATION!r} and its kin only.",
            )
        for name in ("architecture", "decoding"):
            if not isinstance(values.get(name), dict):
                raise BundleError(f"its {name!r} is not a set of names and values.", where=where)
        for name, choices in (("task", get_args(TaskName)), ("network", NETWORKS)):
            if values.get(name, choices[0]) not in choices:
                raise BundleError(f"its {name} {values[name]!r} is unknown.", where=where, remedy="Update transduce.")
        if "vocab_size" not in values["architecture"]:
            raise BundleError("its 'architecture' has no vocab_size.", where=where)
        for name, nouns in (("target_languages", "languages"), ("labels", "labels")):
            names = values.get(name, [])
            if not isinstance(names, list) or not all(isinstance(each, str) for each in names):
                raise BundleError(f"its {name!r} is not a list of {nouns}.", where=where)
        for name in ("keeps_numbers", "mbr"):
            if not isinstance(values.get(name, True), bool):
                raise BundleError(f"its {name!r} is neither true nor false.", where=where)
        if values.get("confidence") is not None:
            try:
                values["confidence"] = Confidence.parse(values["confidence"])
            except ConfigError as error:
                raise BundleError(error.what, where=where, remedy=error.remedy) from error
        bundle = cls(path, BundleConfig(**values))
        texts = vocabulary_files(bundle.shares_vocabulary) if bundle.config.network != "vision" else ()
        weights = () if any((path / name).is_dir() for name in COMPILED) else ("model.safetensors",)
        for name in (*weights, *texts):
            if not (path / name).is_file():
                raise BundleError(f"the model is incomplete: {name} is missing.", where=str(path))
        return bundle

    @classmethod
    def write(
        cls,
        path: Path,
        config: BundleConfig,
        weights: Mapping[str, Tensor],
        vocabularies: Vocabularies | None,
        scores: Mapping[str, Any],
        card: str,
    ) -> Bundle:
        """Write a model directory, each file aside and then renamed, the description last. Pictures have no words."""
        from safetensors.torch import save

        path.mkdir(parents=True, exist_ok=True)
        contents = {
            "model.safetensors": save(dict(weights)),
            **(vocabularies.files() if vocabularies else {}),
            "scores.json": _json(scores),
            "README.md": card.encode(),
            "config.json": _json(asdict(config)),
        }
        asides = {name: write_aside(path / name, content) for name, content in contents.items()}
        for compiled in COMPILED:  # from the old weights
            shutil.rmtree(path / compiled, ignore_errors=True)
        # Only renames are left to do, so that a full disk leaves the old model whole.
        for name, aside in asides.items():
            aside.replace(path / name)
        for name in {*vocabulary_files(True), *vocabulary_files(False)} - contents.keys():  # of an older model
            (path / name).unlink(missing_ok=True)
        return cls.open(path)

    def calibrated(self, confidence: Confidence, measured: Mapping[str, Any]) -> Bundle:
        """Give the model a confidence, and its scores.json how far that is off; nothing else changes."""
        return self._changed(replace(self.config, confidence=confidence), "calibration", measured)

    def penalised(self, alpha: float, measured: Mapping[str, Any]) -> Bundle:
        """Give the model a length penalty, and its scores.json what others came to; nothing else changes."""
        decoding = self.config.decoding | {"alpha": alpha}
        return self._changed(replace(self.config, decoding=decoding), "length_penalty", measured)

    def _changed(self, config: BundleConfig, topic: str, measured: Mapping[str, Any]) -> Bundle:
        """Write another description, and under `topic` what was measured for it."""
        path = self.path / "scores.json"
        try:
            scores = json.loads(path.read_text(encoding="utf-8")) if path.is_file() else {}
            scores[topic] = dict(measured)
        except (ValueError, TypeError) as error:
            raise BundleError("these are not a model's scores.", where=str(path), remedy="Delete the file.") from error
        scores_aside = write_aside(path, _json(scores))
        try:
            write_whole(self.path / "config.json", _json(asdict(config)))
        except OSError:
            scores_aside.unlink(missing_ok=True)
            raise
        scores_aside.replace(path)
        return replace(self, config=config)

    @property
    def has_weights(self) -> bool:
        """Whether PyTorch can run it; what was imported as another tool's model is run by that tool alone."""
        return (self.path / "model.safetensors").is_file()

    @property
    def shares_vocabulary(self) -> bool:
        """Whether source and target have one vocabulary together."""
        return self.config.architecture.get("target_vocab_size") is None

    def vocabularies(self) -> Vocabularies:
        """The vocabularies, found to be those of the weights."""
        if self.config.network == "vision":
            raise BundleError(
                "this model reads pictures and has no vocabulary.",
                where=str(self.path),
                remedy="Give a model that reads text.",
            )
        try:
            rules = Normalisation.parse(self.config.normalisation)
            vocabularies = Vocabularies.load(self.path, self.shares_vocabulary, rules)
            for language in self.config.target_languages:
                vocabularies.marks(language)
        except InputError as error:
            raise BundleError(error.what, where=error.where or str(self.path), remedy=error.remedy) from error
        names, sizes = vocabulary_files(self.shares_vocabulary), ("vocab_size", "target_vocab_size")
        for name, size, tokenizer in zip(names, sizes, (vocabularies.source, vocabularies.target), strict=False):
            expected = self.config.architecture[size]
            if tokenizer.size != expected:
                raise BundleError(
                    f"the tokenizer has {tokenizer.size} pieces, the model {expected}.",
                    where=str(self.path / name),
                    remedy="Copy the model again, all files of it.",
                )
        return vocabularies

    def scores(self) -> dict[str, Any]:
        """What `scores.json` says; nothing where it cannot be read, for nobody needs it to translate."""
        try:
            found = json.loads((self.path / "scores.json").read_text(encoding="utf-8"))
        except (OSError, ValueError, RecursionError):
            return {}
        return found if isinstance(found, dict) else {}

    def require(self, *tasks: TaskName) -> None:
        """Refuse a model that has learned something else."""
        if self.config.task not in tasks:
            raise BundleError(
                f"this model's task is {self.config.task}, not {' or '.join(tasks)}.",
                where=str(self.path),
                remedy=f"Use: transduce {COMMANDS[self.config.task]} {self.path}",
            )

    def model(self) -> Transformer:
        """The encoder-decoder network with its weights, as `module` gives it."""
        self.require("translation", "text-to-text", "parsing")
        return cast("Transformer", self.module())

    def module(self) -> nn.Module:
        """The network with its weights, in evaluation mode. Shapes are checked before anything is allocated."""
        import torch
        from safetensors import SafetensorError, safe_open

        from transduce.model.family import make_network

        if not self.has_weights:
            raise BundleError(
                "the model has no weights for PyTorch: it is there as another tool has it.",
                where=str(self.path),
                remedy="Translate, evaluate or serve it; for the rest, import the model that it was made of.",
            )
        network, architecture = cast("Network", self.config.network), self.config.architecture
        try:
            with torch.device("meta"):
                described = make_network(network, architecture)
            expected = {name: list(value.shape) for name, value in described.named_parameters()}
        except (ConfigError, TypeError, RuntimeError) as error:  # the last two: sizes beyond 64 bits
            what = error.what if isinstance(error, ConfigError) else "no model can have this architecture."
            remedy = error.remedy if isinstance(error, ConfigError) else "Copy the model again."
            raise BundleError(what, where=str(self.path / "config.json"), remedy=remedy) from error
        where = self.path / "model.safetensors"
        try:
            with safe_open(where, framework="pt") as file:
                found = {name: list(file.get_slice(name).get_shape()) for name in file.keys()}  # noqa: SIM118
                if found != expected:
                    raise BundleError(_difference(expected, found), where=str(where))
                module = make_network(network, architecture)
                with torch.no_grad():
                    for name, parameter in module.named_parameters():
                        parameter.copy_(file.get_tensor(name))
        except SafetensorError as error:
            raise BundleError("the weights are damaged.", where=str(where), remedy="Copy them again.") from error
        return module.eval()


def find_model(name: str | Path) -> Path:
    """A model's directory: that of the built-in model of this name, or the directory given.

    "en-de" is the built-in model, "./en-de" a directory of yours; where "en-de" is both, nothing is guessed. A Path
    that exists is a directory.
    """
    if str(name) not in builtin_models():
        return Path(name)
    builtin, own = builtin_folder() / str(name), Path(name)
    if isinstance(name, Path) and own.exists():
        return own
    if (own / "config.json").is_file() or (own / "run").is_dir():
        raise BundleError(
            f"{str(name)!r} is the name of a built-in model, and of a model in this directory.",
            remedy=f"Write .{os.sep}{name} for yours; the other is {builtin}",
        )
    return builtin


def builtin_models() -> list[str]:
    """The names of the models that come with transduce, the one that is used unless told otherwise first."""
    folder = builtin_folder()
    names = [path.name for path in folder.iterdir() if (path / "config.json").is_file()] if folder.is_dir() else []
    return sorted(names, key=lambda name: (name != DEFAULT_MODEL, name))


def builtin_folder() -> Path:
    """Where the models that come with transduce are."""
    return Path(str(files("transduce.assets"))) / "models"


def _difference(expected: dict[str, list[int]], found: dict[str, list[int]]) -> str:
    """Every tensor that is missing, left over or of another shape, by name."""
    missing = sorted(set(expected) - set(found))
    unused = sorted(set(found) - set(expected))
    shapes = [
        f"{name} is {found[name]}, should be {expected[name]}"
        for name in sorted(set(expected) & set(found))
        if expected[name] != found[name]
    ]
    parts = [f"missing: {', '.join(missing)}"] * bool(missing) + [f"unknown: {', '.join(unused)}"] * bool(unused)
    return f"the weights do not fit the architecture; {'; '.join([*parts, *shapes])}."


def _hint(path: Path) -> str:
    if not os.path.exists(path):
        beside = path.parent.iterdir() if path.parent.is_dir() else ()
        names = [entry.name for entry in beside if (entry / "config.json").is_file()] + builtin_models()
        return f"The directory does not exist. {nearest(path.name, names)}"
    if (path / "run").is_dir():
        return "Its training has not finished: run the same train command again."
    return "Give a directory that `transduce train` has written."


def _json(values: Any) -> bytes:
    return (json.dumps(values, ensure_ascii=False, indent=2) + "\n").encode()
