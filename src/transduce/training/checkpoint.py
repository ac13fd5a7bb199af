"""Checkpoints that survive anything: written aside, synced, renamed, with a checksum; the newest sound one is used."""

from __future__ import annotations

import hashlib
import json
import os
import re
import shutil
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors.torch import load_file, save_file
from torch import Tensor

__all__ = ["Checkpoint", "CheckpointStore"]


@dataclass(frozen=True)
class Checkpoint:
    """All that a run needs to go on as if it had not stopped."""

    step: int
    tensors: dict[str, Tensor]
    values: dict[str, Any]
    """What is not a tensor, as JSON."""


class CheckpointStore:
    """The directory of a run's checkpoints, `step-N` each; the newest few are kept."""

    def __init__(self, directory: Path, keep: int = 2) -> None:
        self.directory = directory
        self.keep = keep
        """At least two, so that a damaged one costs a little and not all."""

    def save(self, checkpoint: Checkpoint) -> None:
        """Write a checkpoint; at no moment is a half-written one taken for whole."""
        self.directory.mkdir(parents=True, exist_ok=True)
        aside = self.directory / f".writing-step-{checkpoint.step}"
        shutil.rmtree(aside, ignore_errors=True)
        aside.mkdir()
        save_file(checkpoint.tensors, aside / "tensors.safetensors")
        description = {"step": checkpoint.step, "values": checkpoint.values}
        description["sha256"] = _sha256(aside / "tensors.safetensors")
        (aside / "state.json").write_text(json.dumps(description), encoding="utf-8")
        for file in aside.iterdir():
            _sync(file)
        final = self.directory / f"step-{checkpoint.step}"
        shutil.rmtree(final, ignore_errors=True)  # of a run that was set back to before it
        aside.rename(final)
        _sync(self.directory)
        for _, old in list(self._newest_first())[self.keep :]:
            shutil.rmtree(old, ignore_errors=True)

    def load_newest(self) -> tuple[Checkpoint | None, list[Path]]:
        """The newest sound checkpoint, if any, and the damaged ones that were passed over."""
        damaged: list[Path] = []
        for _, directory in self._newest_first():
            checkpoint = _load(directory)
            if checkpoint is not None:
                return checkpoint, damaged
            damaged.append(directory)
        return None, damaged

    def _newest_first(self) -> Iterator[tuple[int, Path]]:
        if not self.directory.is_dir():
            return
        found = ((re.fullmatch(r"step-(\d+)", path.name), path) for path in self.directory.iterdir())
        yield from sorted(((int(match.group(1)), path) for match, path in found if match), reverse=True)


def _load(directory: Path) -> Checkpoint | None:
    try:
        description = json.loads((directory / "state.json").read_text(encoding="utf-8"))
        tensors = directory / "tensors.safetensors"
        if _sha256(tensors) != description["sha256"]:
            return None
        return Checkpoint(description["step"], load_file(tensors), description["values"])
    except (OSError, ValueError, KeyError):
        return None


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def _sync(path: Path) -> None:
    """Ask the system to put a file, or a directory's entries, on the disk now."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open directories; its renames are journalled
        return
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
