"""Files are cut into blocks and put together again, with nothing lost and nothing changed on the way."""

from __future__ import annotations

import gzip
import json
from dataclasses import asdict
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest

from transduce.bulk.records import JsonLines, ParquetRows, Records, TextLines, records_of
from transduce.errors import ConfigError, InputError
from transduce.translation import Flag, Translation

NOTE = Flag("length", "It is long.")


def upper(records: Records, path: Path, size: int, tmp_path: Path) -> Path:
    """A file whose texts have become capitals, by blocks of a size; the last of each block has a warning."""
    parts = []
    for block in records.blocks(path, size):
        texts = records.texts(block)
        assert len(texts) == block.count <= size
        warned = [[]] * (len(texts) - 1) + [[NOTE]]
        found = [Translation(text.upper(), -1.0, [], 0.5, flags) for text, flags in zip(texts, warned, strict=True)]
        parts.append(tmp_path / f"{block.number}")
        parts[-1].write_bytes(records.written(block, found))
        assert records.count(parts[-1]) == block.count
    joined = tmp_path / f"joined{records.ending}"
    records.join(parts, joined)
    return joined


@pytest.mark.parametrize("size", [1, 3, 4, 100])
@pytest.mark.parametrize("packed", [False, True])
def test_lines_of_text_stay_as_many_and_in_order(tmp_path: Path, size: int, packed: bool) -> None:
    lines = ["one", "", "  ", "tab\there", "vier\u2028fünf", "six"]
    contents = "\n".join(lines).encode()  # the last line has no end
    path = tmp_path / ("in.txt.gz" if packed else "in.txt")
    path.write_bytes(gzip.compress(contents) if packed else contents)
    joined = upper(records_of(path), path, size, tmp_path).read_text(encoding="utf-8")
    assert joined == "ONE\n\n  \nTAB\tHERE\nVIER FÜNF\nSIX\n"


def test_text_can_become_json(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("one\ntwo\n", encoding="utf-8")
    joined = upper(records_of(path, as_json=True), path, 2, tmp_path)
    assert joined.suffix == ".jsonl"
    assert [json.loads(line) for line in joined.read_text(encoding="utf-8").splitlines()] == [
        {"source": "one", "translation": "ONE", "confidence": 0.5},
        {"source": "two", "translation": "TWO", "confidence": 0.5, "warnings": [asdict(NOTE)]},
    ]


def test_what_a_translation_breaks_is_still_one_line(tmp_path: Path) -> None:
    path = tmp_path / "in.txt"
    path.write_text("one\n", encoding="utf-8")
    (block,) = TextLines().blocks(path, 1)
    assert TextLines().written(block, [Translation("ei\nns", 0.0)]) == b"ei ns\n"


def test_a_json_record_is_kept_to_the_digit(tmp_path: Path) -> None:
    path = tmp_path / "in.jsonl"
    records = ['{"id": 1.50e3, "said": "hé\\nllo"}', "", '{"said": null, "said": "x" }  ', '{"said": null}']
    path.write_text("\n".join(records) + "\n", encoding="utf-8")
    joined = upper(records_of(path, "said"), path, 3, tmp_path).read_text(encoding="utf-8").split("\n")
    assert joined == [
        '{"id": 1.50e3, "said": "hé\\nllo", "translation": "HÉ\\nLLO", "confidence": 0.5}',
        "",
        '{"said": null, "said": "x", "translation": "X", "confidence": 0.5, '
        '"warnings": [{"code": "length", "message": "It is long."}]}',
        '{"said": null, "translation": "", "confidence": 0.5, '
        '"warnings": [{"code": "length", "message": "It is long."}]}',
        "",
    ]


@pytest.mark.parametrize("size", [1, 3, 100])
def test_a_table_keeps_its_columns_and_gets_more(tmp_path: Path, size: int) -> None:
    texts = ["one", None, "three", "", "five", "six", "seven"]
    table = pyarrow.table({"text": texts, "id": list(range(7)), "more": [[number] * number for number in range(7)]})
    path = tmp_path / "anything"  # told by its first bytes
    pyarrow.parquet.write_table(table, path, row_group_size=2)
    joined = pyarrow.parquet.read_table(upper(records_of(path), path, size, tmp_path))
    assert joined.select(["text", "id", "more"]) == table
    assert joined["translation"].to_pylist() == ["ONE", "", "THREE", "", "FIVE", "SIX", "SEVEN"]
    assert joined["confidence"].to_pylist() == [0.5] * 7
    assert joined["warnings"].to_pylist()[-1] == [{"code": "length", "message": "It is long."}]


@pytest.mark.parametrize(
    ("records", "contents", "words"),
    [
        (JsonLines(), '{"text": "a"}\n{"texts": "b"}\n', "in:2: there is no 'text'. Give --column NAME. Did you mean"),
        (JsonLines(), "[1]\n", "in:1: this is not a JSON object."),
        (JsonLines(), "\n{\n", "in:2: this is not JSON."),
        (JsonLines(), '{"text": 7}\n', "in:1: 'text' is not a text."),
        (JsonLines("a"), '{"a": "b", "translation": ""}\n', "in:1: there is a 'translation' already."),
        (TextLines(), "a\nb\xff\n", "in:2: not UTF-8"),
        (ParquetRows(), "PAR1 and nothing else", "in: cannot be read"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_said_with_its_line(tmp_path: Path, records: Records, contents: str, words: str) -> None:
    path = tmp_path / "in"
    path.write_bytes(contents.encode("latin1"))
    with pytest.raises(InputError) as caught:
        list(records.blocks(path, 10))
    assert words in str(caught.value)


def test_a_table_without_the_column_or_with_numbers_in_it(tmp_path: Path) -> None:
    path = tmp_path / "in.parquet"
    pyarrow.parquet.write_table(pyarrow.table({"number": [1], "txt": ["a"]}), path)
    with pytest.raises(InputError, match=r"there is no 'text'.*Did you mean 'txt'"):
        list(ParquetRows("text").blocks(path, 1))
    with pytest.raises(InputError, match="the column 'number' is int64, not text"):
        list(ParquetRows("number").blocks(path, 1))


def test_text_has_no_columns(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="lines of text have no columns"):
        records_of(tmp_path / "in.txt", "text")
