"""What the system says about files reaches the user in words, and files are never half there."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from transduce.errors import InputError, StorageError
from transduce.storage import directory_aside, storage_errors, write_whole


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "the disk is full. Free some space and run the same command"),
        (errno.EDQUOT, "the disk quota is used up. Free some space"),
        (errno.EFBIG, "a file would be larger than the system allows. Free some space"),
        (errno.EACCES, "Permission denied. Put that right and run the same command"),
    ],
)
def test_the_systems_errors_are_said_in_words_with_the_place(tmp_path: Path, number: int, words: str) -> None:
    said = {errno.EACCES: "Permission denied"}.get(number, "whatever the system calls it")
    with pytest.raises(StorageError) as caught, storage_errors(tmp_path):
        raise OSError(number, said, "model/log.jsonl")
    assert str(caught.value).startswith(f"model/log.jsonl: {words}")
    with pytest.raises(StorageError) as caught, storage_errors(tmp_path):
        raise OSError(number, said)  # as a write to an open file does
    assert caught.value.where == str(tmp_path)


def test_other_errors_pass(tmp_path: Path) -> None:
    with pytest.raises(BrokenPipeError), storage_errors(tmp_path):
        raise BrokenPipeError
    with pytest.raises(ValueError, match="mine"), storage_errors(tmp_path):
        raise ValueError("mine")


def test_a_directory_that_cannot_be_made_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StorageError, match=r"file.model: "), storage_errors(tmp_path):
        (tmp_path / "file" / "model").mkdir()


def test_a_file_is_replaced_whole_and_a_failure_leaves_the_old_one(tmp_path: Path) -> None:
    path = tmp_path / "recipe.yaml"
    write_whole(path, b"old")
    write_whole(path, b"new")
    assert path.read_bytes() == b"new"
    path.unlink()
    path.mkdir()  # which no file can replace
    with pytest.raises(OSError, match="recipe"):
        write_whole(path, b"newer")
    assert list(tmp_path.iterdir()) == [path]


def test_a_directory_appears_whole_and_takes_the_place_of_its_like_only(tmp_path: Path) -> None:
    output = tmp_path / "model"
    with directory_aside(output, ("model.bin",), "a compiled model") as aside:
        (aside / "model.bin").write_bytes(b"old")
        assert not output.exists()
    with pytest.raises(FileNotFoundError), directory_aside(output, ("model.bin",), "a compiled model") as aside:
        (aside / "no such folder" / "model.bin").write_bytes(b"half")
    assert (output / "model.bin").read_bytes() == b"old"
    with directory_aside(output, ("model.bin",), "a compiled model") as aside:
        (aside / "model.bin").write_bytes(b"new")
    assert (output / "model.bin").read_bytes() == b"new"
    with (
        pytest.raises(InputError, match="something else than graphs"),
        directory_aside(output, ("encoder.onnx",), "graphs"),
    ):
        pytest.fail("it would have been filled")
    assert [each.name for each in tmp_path.rglob("*")] == ["model", "model.bin"]
