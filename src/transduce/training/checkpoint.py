"""Checkpoints that survive anything: written aside, synced, renamed, with a checksum; the newest sound one is used."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Collection, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from transduce.storage import sync

__all__ = ["Checkpoint", "CheckpointStore"]


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on as if it had not stopped."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]
    """What is not a tensor, as JSON."""


class CheckpointStore:
    """A directory of checkpoints, `step-N` each."""

    def __init__(self, directory: Path, keep: int | None = 2, writes: bool = True) -> None:
        self.directory, self.writes = directory, writes
        self.keep = keep
        """How many of the newest stay; at least two, so that a damaged one costs a little and not all. None is all."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; at no moment is a half-written one taken for whole. Of several ranks one writes."""
        if not self.writes:
            return
        self.directory.mkdir(parents=True, exist_ok=True)
        self._sweep()
        aside = self.directory / f".writing-step-{checkpoint.step}"
        try:
            _write(aside, checkpoint)
        except OSError:
            shutil.rmtree(aside, ignore_errors=True)  # half a checkpoint would fill the disk further
            raise
        final = self.path(checkpoint.step)
        if final.exists():  # of a run that was set back to before it
            final.rename(final.with_name(f".removed-{final.name}"))
        aside.rename(final)
        sync(self.directory)
        self._sweep()
        if self.keep is not None:
            self.retain([step for step, _ in islice(self._newest_first(), self.keep)])

    def retain(self, steps: Collection[int]) -> None:
        """Delete all checkpoints but those of some steps."""
        if not self.writes:
            return
        for step, directory in self._newest_first():
            if step not in steps:
                with suppress(OSError):  # Windows, while a reader has it open; then it goes another time
                    directory.rename(directory.with_name(f".removed-{directory.name}"))  # never seen half deleted
        self._sweep()

    def load(self, step: int) -> Checkpoint | None:
        """The checkpoint of a step, if there is a sound one."""
        return _load(self.path(step))

    def load_newest(self) -> tuple[Checkpoint | None, list[Path]]:
        """The newest sound checkpoint, if any, and the damaged ones that were passed over."""
        damaged: list[Path] = []
        for _, directory in self._newest_first():
            checkpoint = _load(directory)
            if checkpoint is not None:
                return checkpoint, damaged
            damaged.append(directory)
        return None, damaged

    def path(self, step: int) -> Path:
        """Where the checkpoint of a step is, or would be."""
        return self.directory / f"step-{step}"

    def _newest_first(self) -> Iterator[tuple[int, Path]]:
        if not self.directory.is_dir():
            return
        found = ((re.fullmatch(r"step-(\d+)", path.name), path) for path in self.directory.iterdir())
        yield from sorted(((int(match.group(1)), path) for match, path in found if match), reverse=True)

    def _sweep(self) -> None:
        """Delete what is half written or half deleted."""
        for pattern in (".writing-*", ".removed-*"):
            for left in self.directory.glob(pattern):
                shutil.rmtree(left, ignore_errors=True)


def _write(directory: Path, checkpoint: Checkpoint) -> None:
    directory.mkdir()
    tensors = directory / "tensors.safetensors"
    try:
        save_file(checkpoint.tensors, tensors)
    except SafetensorError as error:
        raise _system_error(error, tensors) from error
    description = {"step": checkpoint.step, "values": checkpoint.values, "sha256": _sha256(tensors)}
    (directory / "state.json").write_text(json.dumps(description), encoding="utf-8")
    for file in directory.iterdir():
        sync(file)
    sync(directory)


def _load(directory: Path) -> Checkpoint | None:
    try:
        description = json.loads((directory / "state.json").read_text(encoding="utf-8"))
        tensors = directory / "tensors.safetensors"
        if _sha256(tensors) != description["sha256"]:
            return None
        return Checkpoint(description["step"], load_file(tensors), description["values"])
    except (OSError, ValueError, KeyError, TypeError, SafetensorError):
        return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _system_error(error: SafetensorError, path: Path) -> OSError:
    """What the system told safetensors, which passes it on in words: "No space left on device (os error 28)"."""
    found = re.search(r"\(os error (\d+)\)", str(error))
    if found is None:
        return OSError(0, str(error), str(path))
    number = int(found.group(1))
    if os.name == "nt":  # its numbers are its own; Python knows which errno they are
        return OSError(0, str(error), str(path), number)
    return OSError(number, os.strerror(number), str(path))
