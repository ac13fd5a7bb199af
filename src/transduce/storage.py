"""Writing so that nothing is lost: a file appears whole or not at all, and a full disk is said in words."""

from __future__ import annotations

import errno
import os
import shutil
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from hashlib import blake2b
from pathlib import Path

from transduce.errors import InputError, StorageError

__all__ = [
    "check_replaceable",
    "directory_aside",
    "file_digest",
    "storage_errors",
    "sync",
    "write_aside",
    "write_whole",
]

FULL = {
    errno.ENOSPC: "the disk is full",
    errno.EDQUOT: "the disk quota is used up",
    errno.EFBIG: "a file would be larger than the system allows",
}


@contextmanager
def storage_errors(directory: Path) -> Iterator[None]:
    """Raise what the system says about files inside the block as a StorageError; `directory` is where they are."""
    try:
        yield
    except BrokenPipeError:  # the reader of our output has left: nothing is wrong with a file
        raise
    except OSError as error:
        full = FULL.get(error.errno or 0)
        raise StorageError(
            f"{full or error.strerror or error}.",
            where=str(error.filename or directory),
            remedy=f"{'Free some space' if full else 'Put that right'} and run the same command: it goes on where "
            "it was, and what was complete before is untouched.",
        ) from error


def write_whole(path: Path, contents: bytes) -> None:
    """Write a file aside, sync and rename it: a reader sees the old one or the new one, never half of one."""
    aside = write_aside(path, contents)
    try:
        aside.replace(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def write_aside(path: Path, contents: bytes) -> Path:
    """Write and sync what is to become a file, beside it; renaming it there is left to the caller."""
    aside = path.with_name(f".{path.name}.part")
    try:
        with aside.open("wb") as file:
            file.write(contents)
            file.flush()
            os.fsync(file.fileno())
    except OSError:
        aside.unlink(missing_ok=True)  # half a file would fill the disk further
        raise
    return aside


@contextmanager
def directory_aside(path: Path, known_by: Collection[str], what: str) -> Iterator[Path]:
    """A directory to fill: it takes the place of `path` when the block ends, and nothing is left of it on an error.

    What is there already is replaced only if `check_replaceable` has nothing against it.
    """
    check_replaceable(path, known_by, what)
    aside = path.with_name(f".{path.name}.part")
    shutil.rmtree(aside, ignore_errors=True)
    aside.mkdir(parents=True)
    try:
        yield aside
        if path.is_dir():
            shutil.rmtree(path)
        aside.rename(path)
    finally:
        shutil.rmtree(aside, ignore_errors=True)


def check_replaceable(path: Path, known_by: Collection[str], what: str) -> None:
    """Refuse a directory that has something in it but none of the files by which `what` is known: it is not ours."""
    if path.is_dir() and any(path.iterdir()) and not any((path / name).is_file() for name in known_by):
        raise InputError(
            f"this directory holds something else than {what}.",
            where=str(path),
            remedy="Give another: what is there would be lost.",
        )


def sync(path: Path) -> None:
    """Ask the system to put a file, or a directory's entries, on the disk now."""
    if path.is_dir() and os.name == "nt":  # Windows cannot open directories; its renames are journalled
        return
    descriptor = os.open(path, os.O_RDONLY if os.name != "nt" else os.O_RDWR)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def file_digest(path: Path) -> str:
    """What changes when a file's contents do, whatever its name and age."""
    digest = blake2b(digest_size=16)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()
