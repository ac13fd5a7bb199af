"""Parallel text is read as it stands in the file, and what is wrong with a file is named by line."""

from __future__ import annotations

import gzip
import lzma
import os
import tracemalloc
from collections.abc import Callable
from itertools import islice
from pathlib import Path

import pytest

from transduce.data import corpus as corpus_module
from transduce.data.corpus import Corpus, Pair, is_tsv, read_lines
from transduce.errors import ConfigError, InputError
from transduce.text import Direction

Writer = Callable[..., Path]


@pytest.fixture
def write(tmp_path: Path) -> Writer:
    """Writes a file of text or bytes, packed if asked to, and gives its path."""

    def write(name: str, content: str | bytes, pack: Callable[[bytes], bytes] = bytes) -> Path:
        path = tmp_path / name
        path.write_bytes(pack(content.encode() if isinstance(content, str) else content))
        return path

    return write


def lines(*words: str) -> str:
    return "".join(f"{word}\n" for word in words)


THREE = [Pair("one", "eins"), Pair("two", "zwei"), Pair("three", "drei")]


@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
@pytest.mark.parametrize("suffix", ["", ".gz", ".xz"])
def test_packing_is_told_by_content_not_by_name(write: Writer, pack: Callable[[bytes], bytes], suffix: str) -> None:
    source = write(f"a.en{suffix}", lines("one", "two", "three"), pack)
    target = write(f"a.de{suffix}", lines("eins", "zwei", "drei"), pack)
    assert list(Corpus(source, target).pairs()) == THREE


@pytest.mark.parametrize(("name", "pack"), [("a.tsv", bytes), ("a.tsv.gz", gzip.compress), ("a.tsv.xz", lzma.compress)])
def test_a_single_file_has_two_columns(write: Writer, name: str, pack: Callable[[bytes], bytes]) -> None:
    path = write(name, lines("one\teins", "two\tzwei", "three\tdrei"), pack)
    assert list(Corpus(path).pairs()) == THREE


def test_gzip_files_joined_end_to_end_are_read_whole(write: Writer) -> None:
    path = write("a.en.gz", gzip.compress(b"one\n") + gzip.compress(b"two\n"))
    assert list(read_lines(path)) == ["one", "two"]


def test_windows_line_ends_and_byte_order_marks_are_removed(write: Writer) -> None:
    source = write("a.en", b"\xef\xbb\xbfone\r\ntwo\r\nthree")
    target = write("a.de", b"eins\nzwei\r\ndrei\r\n")
    assert list(Corpus(source, target).pairs()) == THREE


def test_a_tsv_with_windows_line_ends_and_a_byte_order_mark(write: Writer) -> None:
    assert list(Corpus(write("a.tsv", b"\xef\xbb\xbfone\teins\r\ntwo\tzwei\r\n")).pairs()) == THREE[:2]


@pytest.mark.parametrize("stray", ["\0", "\x0b", "\x0c", "\r", "\x1c", "\x7f", "\x85", "\u2028", "\u2029", "\ufeff"])
def test_stray_separators_become_a_space_and_split_nothing(write: Writer, stray: str) -> None:
    source, target = write("a.en", f"one{stray}two\nthree\n"), write("a.de", lines("eins", "drei"))
    assert list(Corpus(source, target).pairs()) == [Pair("one two", "eins"), Pair("three", "drei")]


def test_other_characters_are_kept(write: Writer) -> None:
    text = "tab\there, ɛno, 日本, \u200bzero width, no-break\u00a0space, 👍🏽 "
    assert list(read_lines(write("a", lines(text)))) == [text]


def test_blank_lines_are_pairs_too(write: Writer) -> None:
    source, target = write("a.en", "one\n\n\n"), write("a.de", "\n\nzwei\n")
    assert list(Corpus(source, target).pairs()) == [Pair("one", ""), Pair("", ""), Pair("", "zwei")]


def test_text_that_is_not_utf8_is_named_by_line(write: Writer) -> None:
    source = write("a.en", lines("one", "coffee"))
    target = write("a.fr", "un\ncafé\n".encode("latin1"))
    pairs = Corpus(source, target).pairs()
    assert next(pairs) == Pair("one", "un")
    with pytest.raises(InputError, match=r"a\.fr:2: not UTF-8: byte 0xe9 at position 4.*iconv -f latin1 -t utf-8"):
        next(pairs)


def test_utf16_is_recognised(write: Writer) -> None:
    with pytest.raises(InputError, match=r"a\.en:1: not UTF-8.*iconv -f utf-16 -t utf-8"):
        list(read_lines(write("a.en", "one\n".encode("utf-16"))))


@pytest.mark.parametrize(
    ("line", "columns"), [("only one", "1 column instead"), ("", "1 column instead"), ("a\tb\tc", "3 columns instead")]
)
def test_a_tsv_line_without_two_columns_is_named(write: Writer, line: str, columns: str) -> None:
    with pytest.raises(InputError, match=rf"a\.tsv:2: {columns}.*source TAB target"):
        list(Corpus(write("a.tsv", lines("one\teins", line, "two\tzwei"))).pairs())


@pytest.mark.parametrize("source_is_shorter", [True, False])
def test_unequal_files_are_named_with_both_counts(write: Writer, source_is_shorter: bool) -> None:
    short = write("short.txt", lines("a", "b", "c"))
    long = write("long.txt", lines(*"vwxyz"))
    source, target = (short, long) if source_is_shorter else (long, short)
    with pytest.raises(InputError) as caught:
        list(Corpus(source, target).pairs())
    assert caught.value.where == f"{short}:4"
    assert f"{short} has 3 lines, {long} has 5." in str(caught.value)


def test_an_empty_file_beside_a_full_one_is_short_by_its_first_line(write: Writer) -> None:
    with pytest.raises(InputError, match=r"a\.de:1: .*a\.de has 0 lines, .*a\.en has 2"):
        list(Corpus(write("a.en", lines("one", "two")), write("a.de", "")).pairs())


def test_an_empty_corpus_is_an_error(write: Writer) -> None:
    empty = write("a.en", "")
    with pytest.raises(InputError, match=r"a\.en and .*a\.de: there are no lines"):
        list(Corpus(empty, write("a.de", "")).pairs())
    with pytest.raises(InputError, match=r"a\.tsv\.gz: there are no lines"):
        list(Corpus(write("a.tsv.gz", "", gzip.compress)).pairs())


def test_a_missing_file_is_answered_with_the_nearest(write: Writer, tmp_path: Path) -> None:
    write("train.en.gz", "one\n")
    with pytest.raises(InputError, match=r"trian\.en\.gz: there is no such file\. Did you mean 'train\.en\.gz'\?"):
        list(read_lines(tmp_path / "trian.en.gz"))
    with pytest.raises(InputError, match=r"there is no such file\. In that folder: train\.en\.gz\."):
        list(read_lines(tmp_path / "corpus"))
    with pytest.raises(InputError, match=r"The folder .*nowhere does not exist either"):
        list(read_lines(tmp_path / "nowhere" / "train.en.gz"))


def test_a_folder_is_not_a_file(write: Writer, tmp_path: Path) -> None:
    write("train.en", "one\n")
    with pytest.raises(InputError, match=r"this is a folder, not a file\. Give a file in it: train\.en\."):
        list(read_lines(tmp_path))


def test_a_file_may_be_closed_to_the_user(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    path = write("a.en", "one\n")
    monkeypatch.setattr(Path, "open", refuse)  # taking the permission away would not keep root out
    with pytest.raises(InputError, match=r"a\.en: you may not read this file"):
        list(read_lines(path))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress])
def test_a_file_that_was_cut_off_is_an_error(write: Writer, pack: Callable[[bytes], bytes]) -> None:
    packed = pack(os.urandom(5000).hex().encode() + b"\n")
    with pytest.raises(InputError, match=r"a\.en\.gz:1: the compressed file is cut off or damaged here"):
        list(read_lines(write("a.en.gz", packed[: len(packed) // 2])))


def test_a_damaged_file_is_an_error(write: Writer) -> None:
    packed = bytearray(gzip.compress(os.urandom(5000).hex().encode()))
    packed[len(packed) // 2] ^= 0xFF
    with pytest.raises(InputError, match=r"cut off or damaged"):
        list(read_lines(write("a.en.gz", bytes(packed))))


def test_a_zip_archive_is_not_taken_for_text(write: Writer) -> None:
    with pytest.raises(InputError, match=r"a\.zip: the file is a zip archive\. Unpack it"):
        list(read_lines(write("a.zip", b"PK\x03\x04 and so on\n")))


def test_a_file_without_line_ends_is_not_read_whole(write: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(corpus_module, "LONGEST_LINE", 1 << 20)
    at_limit = "x" * ((1 << 20) - 1) + "\n"
    assert [len(line) for line in read_lines(write("a.en", at_limit * 2))] == [(1 << 20) - 1] * 2
    with pytest.raises(InputError, match=r"b\.en:2: the line is longer than 1 MiB.*one sentence on a line"):
        list(read_lines(write("b.en", at_limit + "x" + at_limit)))


def test_the_same_file_twice_is_an_error(write: Writer, tmp_path: Path) -> None:
    path = write("a.en", lines("one", "two"))
    again = tmp_path / "again" / ".." / "a.en"
    (tmp_path / "again").mkdir()
    with pytest.raises(InputError, match=r"a\.en: source and target are the same text: the same file"):
        list(Corpus(path, again).pairs())
    assert list(Corpus(path, again).pairs(allow_identical=True)) == [Pair("one", "one"), Pair("two", "two")]


def numbered(identical: int, of: int) -> str:
    """A TSV of which the first pairs are identical; every other line has a blank side and must not count."""
    pairs = (f"{n}\t{n if n <= identical else -n}\n\t{n}\n" for n in range(1, of + 1))
    return "".join(pairs)


def test_a_copy_of_the_source_is_an_error_wherever_the_corpus_ends(write: Writer) -> None:
    few = write("few.tsv", numbered(identical=10, of=12))
    with pytest.raises(InputError, match=r"few\.tsv: source and target are the same text in 10 of the first 12 pairs"):
        list(Corpus(few).pairs())
    many = Corpus(write("many.tsv", numbered(identical=801, of=3000)))
    with pytest.raises(InputError, match=r"801 of the first 1,000 pairs"):
        list(many.pairs())
    assert len(list(many.pairs(allow_identical=True))) == 6000


def test_some_pairs_may_be_identical(write: Writer) -> None:
    assert len(list(Corpus(write("a.tsv", numbered(identical=800, of=1000))).pairs())) == 2000


@pytest.mark.parametrize(
    ("name", "content", "both"),
    [
        ("a.tsv", "one\n", True),
        ("a.tsv.gz", "one\n", True),
        ("a.en", "one\teins\n", True),
        ("a", "\n  \none\teins\n", True),
        ("a", "one\ttwo\tthree\n", True),
        ("a.en", "one\ntwo\tzwei\n", False),
        ("a.en", "", False),
        ("a.en", "\n\n", False),
        ("a.en", "café\t\n".encode("latin1"), False),
    ],
)
def test_a_file_of_two_columns_is_told_by_name_or_first_line(
    write: Writer, name: str, content: str | bytes, both: bool
) -> None:
    assert is_tsv(write(name, content)) is both


def test_a_packed_file_of_two_columns_is_told_by_content_and_a_missing_one_by_name(write: Writer) -> None:
    assert is_tsv(write("a", "one\teins\n", gzip.compress))
    assert not is_tsv(Path("nowhere/a.en"))
    assert is_tsv(Path("nowhere/a.tsv"))


def test_the_direction_is_as_given_or_as_files_are_named() -> None:
    assert Corpus(Path("a.en.gz"), Path("a.twi")).direction == ("en", "twi")
    assert Corpus(Path("a.en"), Path("translated.txt")).direction == ("en", None)
    assert Corpus(Path("a.tsv")).direction == (None, None)
    assert Corpus(Path("a.tsv"), languages=Direction("en", "de")).direction == ("en", "de")
    assert Corpus(Path("a.en"), Path("a.de"), languages=Direction("fr", "it")).direction == ("fr", "it")


@pytest.mark.parametrize("weight", [0, -1, 1001, float("nan"), float("inf")])
def test_a_weight_is_above_zero_and_not_absurd(weight: float) -> None:
    with pytest.raises(ConfigError, match=rf"a\.tsv: weight={weight} cannot work"):
        Corpus(Path("a.tsv"), weight=weight)


def test_a_corpus_is_named_after_its_files() -> None:
    assert Corpus(Path("data/a.en.gz"), Path("data/a.de.gz")).name == "a.en.gz + a.de.gz"
    assert Corpus(Path("data/a.tsv")).name == "a.tsv"


def test_memory_does_not_grow_with_the_corpus(write: Writer) -> None:
    source = write("a.en.gz", "".join(f"sentence number {n} of many\n" for n in range(200_000)), gzip.compress)
    target = write("a.de", "".join(f"Satz Nummer {n} von vielen\n" for n in range(200_000)))
    tracemalloc.start()
    try:
        assert sum(1 for _ in Corpus(source, target).pairs()) == 200_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 2 << 20  # the files hold 12 MB


def test_reading_may_stop_early(write: Writer) -> None:
    """Files are closed then; an open one would be a ResourceWarning, which fails the test."""
    source = write("a.en.gz", lines("one", "two", "three"), gzip.compress)
    target = write("a.de.xz", lines("eins", "zwei", "drei"), lzma.compress)
    assert list(islice(Corpus(source, target).pairs(), 1)) == THREE[:1]
