"""`transduce corpora`: the text that comes with transduce."""

from __future__ import annotations

import json
from typing import Annotated

import typer

__all__ = ["corpora"]


def corpora(as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False) -> None:
    """List the built-in corpora, which `transduce train` takes by name."""
    from transduce.data.builtin import list_corpora

    found = list_corpora()
    if as_json:
        keys = ("name", "contents", "source_language", "target_language", "licence", "credit")
        entries = [{key: getattr(corpus, key) for key in keys} | {"pairs": dict(corpus.pairs)} for corpus in found]
        typer.echo(json.dumps(entries, ensure_ascii=False, indent=2))
        return
    for corpus in found:
        sizes = ", ".join(f"{count:,} {split}" for split, count in corpus.pairs.items())
        languages = f"{corpus.source_language}–{corpus.target_language}, " if corpus.source_language else ""
        typer.echo(f"{corpus.name}: {languages}{corpus.contents}: {sizes}")
        turned = f"; the other way round: {corpus.reversed.name}" if corpus.contents == "pairs" else ""
        typer.echo(f"  {corpus.licence}; {corpus.credit}{turned}")
