"""Rows of text as tables; the first row is the header."""

from __future__ import annotations

import html
from collections.abc import Sequence

__all__ = ["html_table", "markdown_table"]

Rows = Sequence[Sequence[str]]


def markdown_table(rows: Rows) -> str:
    """For the log."""
    lines = [f"| {' | '.join(row)} |" for row in rows]
    lines.insert(1, "|" + "---|" * len(rows[0]))
    return "\n".join(lines) + "\n"


def html_table(rows: Rows) -> str:
    """For a page, in a box that scrolls if it is too wide."""
    head = "".join(f"<th>{html.escape(cell)}</th>" for cell in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{html.escape(cell)}</td>" for cell in row) + "</tr>" for row in rows[1:])
    return f'<div class="wide"><table><tr>{head}</tr>{body}</table></div>'
