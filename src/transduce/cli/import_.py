"""`transduce import`: other people's models as model directories of ours."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.errors import BundleError, InputError

if TYPE_CHECKING:
    from transduce.interop.imported import Imported
    from transduce.text import Direction

__all__ = ["import_"]


def import_(
    path: Annotated[
        Path,
        typer.Argument(help="Directory of a model of Hugging Face's, fairseq's or CTranslate2's, or an .argosmodel."),
    ],
    to: Annotated[Path, typer.Option("--to", "-o", help="Directory to write.")],
    languages: Annotated[
        str | None,
        typer.Option(help="From which into which, such as en-fr; needed for models that know many languages."),
    ] = None,
    allow_pickle: Annotated[
        bool,
        typer.Option("--allow-pickle", help="Read pickled weights too, by a loader that takes nothing but tensors."),
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Overwrite the model that is there.")] = False,
) -> None:
    """Make a model directory of someone else's model.

    MarianMT (OPUS-MT), M2M-100, NLLB, mBART, BART, T5, BERT, GPT-2 and ViT of Hugging Face, Transformers of fairseq.

    It then translates, is measured, adapted (train --from), looked into, exported and served like any other. Models
    compiled for CTranslate2, packages of Argos among them, only translate, are measured and served.
    """
    from rich.console import Console

    if to.exists() and not force:
        raise InputError("something is there already.", where=str(to), remedy="Give another --to, or --force.")
    with Console(stderr=True).status("Reading …"):
        from transduce.text.languages import Direction

        direction = Direction.parse(languages) if languages else None
        imported = _imported(path, to, direction, allow_pickle)
    bundle = imported.bundle
    if as_json:
        entry = {
            "output": str(to),
            "kind": imported.kind,
            "task": bundle.config.task,
            "parameters": imported.parameters,
            "pieces": imported.pieces,
            "source_language": bundle.config.source_language,
            "target_languages": bundle.config.target_languages or list(filter(None, [bundle.config.target_language])),
            "notes": imported.notes,
        }
        typer.echo(json.dumps(entry, ensure_ascii=False, indent=2))
        return
    pieces = f", {imported.pieces:,} pieces" if imported.pieces else ""
    typer.echo(f"Wrote {to}: a {imported.kind}, {imported.parameters:,} parameters{pieces}.")
    for note in imported.notes:
        typer.echo(f"  {note}")
    from transduce.cli.example_arguments import command_for

    typer.echo(f"Try: {command_for(bundle.config.task, to)}")


def _imported(path: Path, to: Path, direction: Direction | None, allow_pickle: bool) -> Imported:
    """By what lies there."""
    if not path.exists():
        raise BundleError(
            "there is no such directory.", where=str(path), remedy="Give the directory that the model's files are in."
        )
    from transduce.interop.ctranslate2_import import import_ctranslate2, is_ctranslate2

    if is_ctranslate2(path):
        return import_ctranslate2(path, to, direction)
    if (path / "config.json").is_file():
        from transduce.interop.imported import import_huggingface

        return import_huggingface(path, to, direction, allow_pickle)
    from transduce.interop.fairseq import find_checkpoint, import_fairseq

    if find_checkpoint(path) is None:
        raise BundleError(
            "no model is recognised here: there is neither a config.json nor a fairseq checkpoint (.pt).",
            where=str(path),
            remedy="Give the directory that the model's files are in.",
        )
    return import_fairseq(path, to, direction, allow_pickle)
