"""Pictures and labels are read as they were saved; nothing in a file is executed, and no header is believed blindly."""

from __future__ import annotations

import contextlib
import gzip
import io
import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.data import images as images_module
from transduce.data.images import Pictures, read_array, read_images
from transduce.errors import InputError

GREY = np.arange(2 * 3 * 4, dtype=np.uint8).reshape(2, 3, 4)
COLOURS = np.arange(2 * 3 * 4 * 3, dtype=np.uint8).reshape(2, 3, 4, 3)


def idx(array: np.ndarray, kind: int = 8) -> bytes:
    """As the page of the MNIST database describes it: zero, zero, kind, dimensions, sizes, numbers."""
    sizes = b"".join(size.to_bytes(4, "big") for size in array.shape)
    return bytes([0, 0, kind, array.ndim]) + sizes + array.tobytes()


def npy(array: np.ndarray, **options: bool) -> bytes:
    file = io.BytesIO()
    np.save(file, array, **options)
    return file.getvalue()


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(contents: bytes, name: str = "pictures") -> Path:
        (tmp_path / name).write_bytes(contents)
        return tmp_path / name

    return write


Writer = Callable[..., Path]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("save", [idx, npy])
@pytest.mark.parametrize("array", [GREY, COLOURS], ids=["grey", "colours"])
def test_what_was_saved_is_read_with_a_channel_at_least(
    write: Writer, pack: Callable[[bytes], bytes], save: Callable[[np.ndarray], bytes], array: np.ndarray
) -> None:
    found = read_images(write(pack(save(array))))
    assert found.dtype == np.uint8
    assert np.array_equal(found, array.reshape(2, 3, 4, -1))


def test_columns_before_rows_is_read_as_the_same_picture(write: Writer) -> None:
    assert np.array_equal(read_array(write(npy(np.asfortranarray(GREY)))), GREY)


@pytest.mark.parametrize("kind", [np.uint8, np.int32, np.int64, np.dtype(">i2")])
def test_labels_of_any_whole_numbers_belong_to_their_pictures(write: Writer, kind: np.dtype) -> None:
    pictures = Pictures.read(write(idx(GREY)), write(npy(np.array([7, 0], dtype=kind)), "labels"))
    assert pictures.labels.tolist() == [7, 0]
    assert pictures.labels.dtype == np.int64
    assert len(pictures) == 2


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        ([1, 2, 3], "labels: 3 labels for 2 pictures"),
        ([], "labels: .*0 labels for 2 pictures|these are no labels"),
        ([[1], [2]], "labels: these are no labels"),
        ([0.5, 1.0], "labels: these are no labels"),
        ([1, -1], r"labels: the label -1 is negative\. Count from 0"),
        ([1, 10**12], "labels: the label 1000000000000 is too large"),
    ],
)
def test_labels_that_do_not_belong_to_the_pictures_are_refused(write: Writer, labels: list, message: str) -> None:
    with pytest.raises(InputError, match=message):
        Pictures.read(write(idx(GREY)), write(npy(np.array(labels)), "labels"))


@pytest.mark.parametrize(
    "array",
    [GREY[0], GREY.astype(np.float32), np.zeros((1, 1, 1, 1, 1), dtype=np.uint8)],
    ids=["flat", "float", "five"],
)
def test_what_are_no_pictures_is_refused_with_its_shape(write: Writer, array: np.ndarray) -> None:
    with pytest.raises(InputError, match=r"pictures: these are no pictures: .* of shape \[.*Give bytes \[pictures"):
        read_images(write(npy(array)))


@pytest.mark.parametrize("save", [idx, npy])
@pytest.mark.parametrize("cut", [-1, -20, 1], ids=["by one", "in the middle", "too long"])
def test_a_file_that_is_cut_off_or_too_long_is_refused(
    write: Writer, save: Callable[[np.ndarray], bytes], cut: int
) -> None:
    contents = save(GREY)
    with pytest.raises(InputError, match=r"pictures: the .* damaged"):
        read_array(write(contents + b"\0" if cut > 0 else contents[:cut]))


@pytest.mark.parametrize(
    "header",
    [
        bytes([0, 0, 8, 3]) + b"\xff" * 12,  # 2⁹⁶ bytes
        bytes([0, 0, 8, 3, 0, 0]),
        bytes([0, 0, 8, 255]) + b"\0\0\0\1" * 255 + b"\0",
        bytes([0, 0, 8, 64]) + b"\0\0\0\0" + b"\xff" * 252,
    ],
    ids=["huge", "short", "255 dimensions", "nothing of much"],
)
def test_an_idx_header_that_lies_is_refused(write: Writer, header: bytes) -> None:
    with pytest.raises(InputError, match=r"pictures: .*(damaged|dimensions)"):
        read_array(write(header))


@pytest.mark.parametrize("shape", ["(1000000000000,)", "(-1,)", "(3, 'x')", "3", "((", "[2]"])
def test_an_npy_header_that_lies_is_refused_without_allocating(write: Writer, shape: str) -> None:
    text = f"{{'descr': '|u1', 'fortran_order': False, 'shape': {shape}, }}".encode().ljust(117) + b"\n"
    contents = b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text + b"\0" * 6
    with pytest.raises(InputError, match=r"pictures: the \.npy file is damaged"):
        read_array(write(contents))


class Evil:
    """What a pickle could do; it would end the tests."""

    def __reduce__(self) -> tuple[Callable[..., None], tuple[int]]:
        import os

        return os._exit, (7,)


def test_a_pickle_is_never_loaded(write: Writer) -> None:
    array = np.array([Evil()], dtype=object)
    with pytest.raises(InputError, match=r"pictures: the \.npy file is damaged: it holds Python objects"):
        read_array(write(npy(array, allow_pickle=True)))
    with pytest.raises(InputError, match=r"pictures: neither an IDX file of bytes nor a \.npy file"):
        read_array(write(pickle.dumps(Evil())))


@pytest.mark.parametrize("contents", [b"", b"\0", b"text, not pictures", idx(GREY, kind=13)[:40]])
def test_another_file_is_answered_with_what_to_save(write: Writer, contents: bytes) -> None:
    with pytest.raises(InputError, match=r"neither an IDX file of bytes nor a \.npy file\. Save pictures with numpy"):
        read_array(write(contents))


def test_damaged_gzip_a_missing_file_and_a_folder_are_named(write: Writer, tmp_path: Path) -> None:
    with pytest.raises(InputError, match="pictures: cannot be read"):
        read_array(write(gzip.compress(idx(GREY))[:-6]))
    with pytest.raises(InputError, match="nowhere: there is no such file"):
        read_array(tmp_path / "nowhere")
    with pytest.raises(InputError, match=f"{tmp_path.name}: cannot be read"):
        read_array(tmp_path)


def test_a_file_that_unpacks_to_too_much_is_not_unpacked(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(images_module, "LARGEST", 1000)
    with pytest.raises(InputError, match="unpacks to more than 4 GiB"):
        read_array(write(gzip.compress(idx(np.zeros((50, 5, 5), dtype=np.uint8)))))


@given(st.data())
def test_no_change_of_a_byte_gives_anything_but_numbers_or_a_message(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    contents = bytearray(data.draw(st.sampled_from([idx(GREY), npy(GREY)])))
    for _ in range(data.draw(st.integers(1, 4))):
        contents[data.draw(st.integers(0, len(contents) - 1))] = data.draw(st.integers(0, 255))
    path = tmp_path_factory.getbasetemp() / "changed"
    path.write_bytes(contents)
    with contextlib.suppress(InputError):
        assert read_array(path).nbytes <= len(contents)
