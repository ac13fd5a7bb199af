"""Files that texts stand in: lines of text, JSON lines, tables in Parquet. Cut into blocks, and put together again."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transduce.data.corpus import read_lines
from transduce.errors import ConfigError, InputError, nearest
from transduce.translation import Translation

if TYPE_CHECKING:
    import pyarrow

__all__ = ["Block", "JsonLines", "ParquetRows", "Records", "TextLines", "records_of"]

ADDED = ("translation", "confidence", "warnings")
"""What a record gets beside its own."""
PARQUET = b"PAR1"


@dataclass(frozen=True)
class Block:
    """Some records of a file, one after the other, that one worker translates."""

    number: int
    count: int
    records: bytes
    """As their kind of file has them."""


class Records(Protocol):
    """A kind of file: how to cut it, what there is to translate, and what becomes of it."""

    @property
    def ending(self) -> str:
        """That of the files that are written, such as `.txt`."""

    def blocks(self, path: Path, size: int) -> Iterator[Block]:
        """All records in order, `size` at a time; what is wrong with one is said with file and line."""

    def texts(self, block: Block) -> list[str]:
        """What there is to translate, a text for each record."""

    def written(self, block: Block, translations: Sequence[Translation]) -> bytes:
        """The file that holds the translations of a block."""

    def count(self, path: Path) -> int:
        """How many records a file that was written has."""

    def join(self, parts: Iterable[Path], path: Path) -> None:
        """One file of the files of all blocks."""


def records_of(path: Path, column: str | None = None, as_json: bool = False) -> Records:
    """What kind of file it is: Parquet by its first bytes, JSON lines by its name, else text.

    Of records, the texts stand in the `column`, which is "text" unless named. Text can be written `as_json`.
    """
    if is_parquet(path):
        return ParquetRows(column or "text")
    if is_json(path):
        return JsonLines(column or "text")
    if column is not None:
        raise ConfigError(f"--column {column}: lines of text have no columns.", where=str(path), remedy="Leave it out.")
    return TextLines(as_json)


def is_parquet(path: Path) -> bool:
    """Whether a file is a table in Parquet; one that cannot be read is called so."""
    try:
        with path.open("rb") as file:
            return file.read(len(PARQUET)) == PARQUET
    except OSError:
        return path.suffix == ".parquet"


def is_json(path: Path) -> bool:
    """Whether a file is called one of JSON lines, packed or not."""
    return any(suffix in (".jsonl", ".ndjson") for suffix in path.suffixes[-2:])


class Lines:
    """Files of lines, be they text or JSON."""

    def count(self, path: Path) -> int:
        """How many lines a file has."""
        with path.open("rb") as file:
            return sum(1 for _ in file)

    def join(self, parts: Iterable[Path], path: Path) -> None:
        """All lines in one file."""
        with path.open("wb") as file:
            for part in parts:
                with part.open("rb") as lines:
                    shutil.copyfileobj(lines, file)

    def _cut(self, lines: Iterable[str], size: int) -> Iterator[Block]:
        lines, number = iter(lines), 0
        while block := list(islice(lines, size)):
            yield Block(number, len(block), "".join(f"{line}\n" for line in block).encode())
            number += 1


@dataclass(frozen=True)
class TextLines(Lines):
    """A text a line; translations a line each, or as JSON with what there is to say about them."""

    as_json: bool = False

    @property
    def ending(self) -> str:
        """That of the files that are written."""
        return ".jsonl" if self.as_json else ".txt"

    def blocks(self, path: Path, size: int) -> Iterator[Block]:
        """All lines in order."""
        return self._cut(read_lines(path), size)

    def texts(self, block: Block) -> list[str]:
        """The lines."""
        return _lines(block)

    def written(self, block: Block, translations: Sequence[Translation]) -> bytes:
        """Lines of text, or of JSON."""
        if not self.as_json:
            return "".join(each.text.replace("\n", " ") + "\n" for each in translations).encode()
        pairs = zip(_lines(block), translations, strict=True)
        return "".join(f"{_json({'source': line} | _added(each))}\n" for line, each in pairs).encode()


@dataclass(frozen=True)
class JsonLines(Lines):
    """A JSON object a line, which is kept as it is written; blank lines stay blank."""

    column: str = "text"
    ending = ".jsonl"

    def blocks(self, path: Path, size: int) -> Iterator[Block]:
        """All lines in order, each found to have a text in the column."""

        def checked() -> Iterator[str]:
            for number, line in enumerate(read_lines(path), start=1):
                if line.strip():
                    self._check(line, f"{path}:{number}")
                yield line

        return self._cut(checked(), size)

    def texts(self, block: Block) -> list[str]:
        """The column; what is null is empty."""
        return [json.loads(line)[self.column] or "" if line.strip() else "" for line in _lines(block)]

    def written(self, block: Block, translations: Sequence[Translation]) -> bytes:
        """The lines, with more in their objects."""
        lines = []
        for line, translation in zip(_lines(block), translations, strict=True):
            # Put behind what is there, so that not a digit of it is written otherwise.
            head = line.rstrip().removesuffix("}").rstrip()
            lines.append(f"{head}, {_json(_added(translation))[1:]}\n" if line.strip() else "\n")
        return "".join(lines).encode()

    def _check(self, line: str, where: str) -> None:
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise InputError("this is not JSON.", where=where, remedy="Write one JSON object a line.") from error
        if not isinstance(record, dict):
            raise InputError("this is not a JSON object.", where=where, remedy='Write {"text": "…"} on each line.')
        _check_column(self.column, list(record), where)
        if not isinstance(record[self.column], str | None):
            raise InputError(f"{self.column!r} is not a text.", where=where, remedy="Use quotes, or null.")


@dataclass(frozen=True)
class ParquetRows:
    """A table; the columns of the translations stand beside its own."""

    column: str = "text"
    ending = ".parquet"

    def blocks(self, path: Path, size: int) -> Iterator[Block]:
        """All rows in order, however they are grouped in the file."""
        pyarrow, parquet = _pyarrow()
        try:
            with parquet.ParquetFile(path) as file:
                self._check(file.schema_arrow, str(path))
                number, held = 0, []
                for batch in file.iter_batches(size):
                    held.append(batch)
                    while sum(map(len, held)) >= size:
                        table = pyarrow.Table.from_batches(held)
                        yield Block(number, size, _packed(table[:size]))
                        number, held = number + 1, table[size:].to_batches()
                if rows := sum(map(len, held)):
                    yield Block(number, rows, _packed(pyarrow.Table.from_batches(held)))
        except (OSError, pyarrow.ArrowInvalid) as error:
            raise InputError(f"cannot be read: {error}.", where=str(path), remedy="Write the table again.") from error

    def texts(self, block: Block) -> list[str]:
        """The column; what is null is empty."""
        return [text or "" for text in _unpacked(block)[self.column].to_pylist()]

    def written(self, block: Block, translations: Sequence[Translation]) -> bytes:
        """A table of the rows with more columns."""
        pyarrow, parquet = _pyarrow()
        added = [_added(each) for each in translations]
        said = pyarrow.list_(pyarrow.struct([("code", pyarrow.string()), ("message", pyarrow.string())]))
        table = _unpacked(block)
        for name, kind in zip(ADDED, (pyarrow.string(), pyarrow.float64(), said), strict=True):
            table = table.append_column(name, pyarrow.array([each.get(name) for each in added], kind))
        contents = BytesIO()
        parquet.write_table(table, contents)
        return contents.getvalue()

    def count(self, path: Path) -> int:
        """How many rows a table has."""
        pyarrow, parquet = _pyarrow()
        try:
            return int(parquet.read_metadata(path).num_rows)
        except (OSError, pyarrow.ArrowInvalid):  # none that could be read
            return -1

    def join(self, parts: Iterable[Path], path: Path) -> None:
        """All rows in one table."""
        _, parquet = _pyarrow()
        writer = None
        for part in parts:
            table = parquet.read_table(part)
            writer = writer or parquet.ParquetWriter(path, table.schema)
            writer.write_table(table)
        if writer is not None:
            writer.close()

    def _check(self, schema: pyarrow.Schema, where: str) -> None:
        pyarrow, _ = _pyarrow()
        _check_column(self.column, schema.names, where)
        kind = schema.field(self.column).type
        if not (pyarrow.types.is_string(kind) or pyarrow.types.is_large_string(kind)):
            raise InputError(f"the column {self.column!r} is {kind}, not text.", where=where, remedy="Name another.")


def _check_column(column: str, columns: Sequence[str], where: str) -> None:
    if column not in columns:
        remedy = f"Give --column NAME. {nearest(column, columns)}" if columns else "Give records that have a text."
        raise InputError(f"there is no {column!r}.", where=where, remedy=remedy)
    for name in ADDED:
        if name in columns:
            raise InputError(f"there is a {name!r} already.", where=where, remedy="Give it another name.")


def _added(translation: Translation) -> dict[str, Any]:
    """What is put beside a record; warnings only if there are any."""
    values = {"translation": translation.text, "confidence": translation.confidence}
    return values | ({"warnings": [asdict(flag) for flag in translation.warnings]} if translation.warnings else {})


def _lines(block: Block) -> list[str]:
    return block.records.decode().split("\n")[:-1]


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False)


def _packed(table: pyarrow.Table) -> bytes:
    pyarrow, _ = _pyarrow()
    contents = BytesIO()
    with pyarrow.ipc.new_stream(contents, table.schema) as stream:
        stream.write_table(table)
    return contents.getvalue()


def _unpacked(block: Block) -> pyarrow.Table:
    pyarrow, _ = _pyarrow()
    return pyarrow.ipc.open_stream(block.records).read_all()


def _pyarrow() -> tuple[Any, Any]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError as error:
        raise ConfigError("Parquet needs pyarrow.", remedy="Run: pip install 'transduce[cluster]'") from error
    return pyarrow, pyarrow.parquet
