"""What every worker does, wherever it is: a model, loaded once, that makes translations of blocks."""

from __future__ import annotations

import platform
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from transduce.bulk.records import Block, Records
from transduce.bundle import COMPILED, Bundle, builtin_folder
from transduce.engines.engine import EngineName
from transduce.errors import BundleError, TransduceError
from transduce.storage import file_digest
from transduce.text.vocabularies import vocabulary_files
from transduce.translator import Translator

__all__ = ["BlockTranslator", "Done", "Place", "Work"]


@dataclass(frozen=True)
class Place:
    """Where a model lies, on every machine."""

    path: Path
    """Relative, if the model comes with transduce: each machine has its own."""
    digest: str
    """That of the model's files, which must be the same everywhere."""

    @classmethod
    def of(cls, bundle: Bundle) -> Place:
        """That of a model which lies here."""
        path = bundle.path.resolve()
        return cls(Path(path.name) if path.parent == builtin_folder().resolve() else path, _digest(bundle))

    def as_dict(self) -> dict[str, str]:
        """As a manifest names a file."""
        return {"name": self.path.name, "digest": self.digest}

    def open(self) -> Bundle:
        """The model, if it is the same one here."""
        path = builtin_folder() / self.path  # which is the path itself, if that is absolute
        if not path.is_dir():
            raise BundleError(
                f"the worker on {platform.node()} does not see this model.",
                where=str(path),
                remedy="Put it where all machines of the cluster have it under the same name: on a shared file system.",
            )
        bundle = Bundle.open(path)
        if _digest(bundle) != self.digest:
            raise BundleError(
                f"the worker on {platform.node()} has another model here.",
                where=str(path),
                remedy="Copy the model again, all files of it, and have the same transduce on all machines.",
            )
        return bundle


@dataclass(frozen=True)
class Work:
    """All that a worker is told once."""

    records: Records
    model: Place
    back: Place | None = None
    """The model of the other direction that has a say."""
    engine: EngineName = "auto"
    shortlist: bool = False
    to: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)
    """Those of `Translator.translate`."""
    threads: int = 1
    """Of each worker."""


@dataclass(frozen=True)
class Done:
    """What has become of a block: the file to be written, or why there is none."""

    number: int
    part: bytes = b""
    warned: int = 0
    """Records with warnings."""
    failure: str | None = None
    """What went wrong, and may go well another time."""
    mistake: TransduceError | None = None
    """What the user has to put right."""


class BlockTranslator:
    """A worker."""

    def __init__(self, work: Work) -> None:
        self.work = work

    def __call__(self, block: Block) -> Done:
        """Translate a block."""
        return self.begin(block)()

    def begin(self, block: Block) -> Callable[[], Done]:
        """Start to translate a block; what is returned gives the result when called, and never raises."""
        try:
            texts = self.work.records.texts(block)
            begun = self._translator.begin(texts, self.work.to, **self.work.options)
        except Exception as error:
            failed = _failed(block, error)
            return lambda: failed

        def finish() -> Done:
            try:
                translations = begun()
                warned = sum(bool(each.warnings) for each in translations)
                return Done(block.number, self.work.records.written(block, translations), warned)
            except Exception as error:
                return _failed(block, error)

        return finish

    @cached_property
    def _translator(self) -> Translator:
        work = self.work
        back = None if work.back is None else Translator(work.back.open(), threads=work.threads)
        return Translator(work.model.open(), work.engine, work.shortlist, threads=work.threads, back=back)


def _digest(bundle: Bundle) -> str:
    """What changes when anything does that a translation depends on."""
    names = ["config.json", "model.safetensors", *vocabulary_files(bundle.shares_vocabulary)]
    compiled = (path for name in COMPILED for path in sorted((bundle.path / name).glob("*")))
    paths = [path for path in (*(bundle.path / name for name in names), *compiled) if path.is_file()]
    return "-".join(file_digest(path)[:8] for path in paths)


def _failed(block: Block, error: Exception) -> Done:
    if isinstance(error, TransduceError):
        return Done(block.number, mistake=error)
    return Done(block.number, failure=f"{type(error).__name__}: {error}")
