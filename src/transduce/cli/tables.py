"""Tables of scores, drawn alike by every command that measures."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich import box
from rich.console import Console
from rich.table import Table

__all__ = ["print_scores"]


def print_scores(header: Sequence[str], rows: Iterable[Sequence[str]], signatures: Iterable[str]) -> None:
    """A table, and under it the settings that made its numbers."""
    console = Console()
    table = Table(*header, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    for signature in signatures:
        console.print(signature, style="dim", highlight=False, soft_wrap=True)
