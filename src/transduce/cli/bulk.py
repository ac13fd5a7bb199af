"""`transduce translate -o FOLDER/`: large files in blocks, by many workers; stopped and gone on with at any time."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Literal

import typer

from transduce.errors import ConfigError

__all__ = ["ClusterOption", "ColumnOption", "Into", "RayAddressOption", "WorkersOption"]

ColumnOption = Annotated[
    str | None, typer.Option(help="Of .jsonl and .parquet, where the text stands. Else text.", show_default=False)
]
WorkersOption = Annotated[
    int | None,
    typer.Option(
        min=1, help="Into a folder: processes with a model each. Else this one alone; on a cluster, one a core."
    ),
]
ClusterOption = Annotated[
    Literal["none", "ray"], typer.Option(help="Into a folder: ray spreads the work over a Ray cluster.")
]
RayAddressOption = Annotated[
    str | None, typer.Option(help="The cluster. Else RAY_ADDRESS; else Ray is started on this machine.")
]


@dataclass(frozen=True)
class Into:
    """Where translations go, and who makes them."""

    output: str | None
    column: str | None
    workers: int | None
    cluster: Literal["none", "ray"]
    address: str | None

    def is_folder(self, text: list[str] | None, path: Path | None) -> bool:
        """Whether it is a folder; if so, there must be a file, and what only a folder knows is for none else."""
        asked = {"--column": self.column, "--workers": self.workers, "--ray-address": self.address}
        asked |= {"--engine-cluster": self.cluster if self.cluster != "none" else None}
        used = [name for name, value in asked.items() if value is not None]
        if not self.output or not (self.output.endswith(("/", os.sep)) or os.path.isdir(self.output)):
            if used or (path is not None and not text and _holds_records(path)):
                what = f"{used[0]} is" if used else "records are"
                raise ConfigError(
                    f"{what} for translating into a folder.",
                    where=str(path) if path else None,
                    remedy=f"Give one: -o {(self.output or 'out').split('.')[0]}/",
                )
            return False
        if text or path is None or (path.exists() and not path.is_file()):
            raise ConfigError(
                "only a file can be translated into a folder, so that it can be gone on with.",
                where=self.output,
                remedy="Give it with -i FILE, or a file as the output.",
            )
        if self.address is not None and self.cluster != "ray":
            raise ConfigError("--ray-address is for Ray.", remedy="Add: --engine-cluster ray")
        return True

    def translate(self, path: Path | None, as_json: bool, **options: Any) -> None:
        """Translate a file, and say what came of it."""
        from transduce.bulk import BulkTranslation
        from transduce.bulk.records import records_of
        from transduce.cli.line_progress import LineProgress

        assert path is not None
        assert self.output is not None
        records = records_of(path, self.column, as_json)
        translation = BulkTranslation(input=path, records=records, output=Path(self.output), **options)
        with LineProgress(None) as bar:
            summary = translation.run(self.cluster, self.workers, self.address, bar.reach)
        again = f", {summary.resumed:,} of them before" if summary.resumed else ""
        typer.echo(f"{summary.records:,} lines{again}: {summary.path}")
        if summary.warned:
            tells = "; --json tells which" if records.ending == ".txt" else ""
            typer.echo(f"transduce: {summary.warned:,} of these translations have warnings{tells}.", err=True)


def _holds_records(path: Path) -> bool:
    from transduce.bulk.records import is_json, is_parquet

    return path.is_file() and (is_json(path) or is_parquet(path))
