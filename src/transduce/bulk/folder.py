"""Where translations are put: a file for each finished block, what they are of, and in the end one file of all.

manifest.json          what is translated, with which model and options; how many records; whether it is complete
part-00000.txt …       a finished block each, written aside and renamed; gone when all are joined
translations.txt       all in the order of the input (.jsonl and .parquet for records)
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from transduce.bulk.records import Records
from transduce.errors import ConfigError, StorageError
from transduce.storage import check_replaceable, sync, write_whole

__all__ = ["BulkFolder"]

FORMAT = 1
PART = re.compile(r"part-(\d+)\.\w+")


class BulkFolder:
    """A folder of translations: what is finished stays, and the same order goes on with the rest.

    `order` says what is translated and how, by names that a user knows; `sizes` are the records of each block.
    """

    def __init__(self, path: Path, records: Records, order: dict[str, Any], sizes: list[int]) -> None:
        self.path, self.records, self.sizes = path, records, sizes
        self.joined = path / f"translations{records.ending}"
        self._manifest = {"format": FORMAT, **order, "records": sum(sizes), "blocks": len(sizes)}

    def open(self) -> None:
        """Make the folder, or find it to be one of the same order."""
        check_replaceable(self.path, ["manifest.json"], "translations")
        self.path.mkdir(parents=True, exist_ok=True)
        before = self._before()
        if before is None:
            self._write(complete=False)
            return
        for name in (*self._manifest, *before):
            if name != "complete" and before.get(name) != self._manifest.get(name):
                raise ConfigError(
                    f"these translations were begun with another {name}: {_shown(before.get(name))}, "
                    f"now {_shown(self._manifest.get(name))}.",
                    where=str(self.path),
                    remedy="Give another folder, or delete this one.",
                )

    @property
    def complete(self) -> bool:
        """Whether all is done."""
        return bool((self._before() or {}).get("complete")) and self.joined.is_file()

    def finished(self) -> set[int]:
        """The numbers of the blocks that are done."""
        names = (PART.fullmatch(path.name) for path in self.path.iterdir())
        return {int(name.group(1)) for name in names if name} & set(range(len(self.sizes)))

    def keep(self, number: int, contents: bytes) -> None:
        """Write what has become of a block."""
        write_whole(self._part(number), contents)

    def join(self) -> None:
        """Make one file of all blocks, found to have as many records as they should."""
        parts = [self._part(number) for number in range(len(self.sizes))]
        for part, size in zip(parts, self.sizes, strict=True):
            if not part.is_file() or self.records.count(part) != size:
                raise StorageError(
                    f"this file should have {size:,} records and has not.",
                    where=str(part),
                    remedy="Delete it and run the same command.",
                )
        aside = self.joined.with_name(f".{self.joined.name}.part")
        self.records.join(parts, aside)
        sync(aside)
        aside.replace(self.joined)
        self._write(complete=True)
        self.tidy()

    def tidy(self) -> None:
        """Remove the blocks, which are in the joined file."""
        for number in self.finished():
            self._part(number).unlink()

    def _part(self, number: int) -> Path:
        return self.path / f"part-{number:05}{self.records.ending}"

    def _before(self) -> dict[str, Any] | None:
        path = self.path / "manifest.json"
        if not path.is_file():
            return None
        try:
            before = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            before = None
        if not isinstance(before, dict):
            raise ConfigError("this is not what transduce wrote.", where=str(path), remedy="Give another folder.")
        return before

    def _write(self, complete: bool) -> None:
        contents = json.dumps(self._manifest | {"complete": complete}, ensure_ascii=False, indent=2)
        write_whole(self.path / "manifest.json", f"{contents}\n".encode())


def _shown(value: Any) -> str:
    if isinstance(value, dict):  # a file: two of one name are told apart by what is in them
        return f"{value['name']} ({value['digest'][:8]})"
    return "none" if value is None else str(value)
