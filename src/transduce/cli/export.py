"""`transduce export`: a model in other tools' formats."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from transduce.errors import InputError

__all__ = ["export"]


def export(
    model: Annotated[Path, typer.Argument(help="Directory of a trained model.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="Directory to write.")],
    to: Annotated[Literal["ctranslate2"], typer.Option(help="Whose format.")] = "ctranslate2",
    quantization: Annotated[
        Literal["int8", "float32"] | None, typer.Option(help="int8 is smaller and faster; the default unless narrow.")
    ] = None,
    force: Annotated[bool, typer.Option("--force", help="Overwrite what is there.")] = False,
) -> None:
    """Write a model in another tool's format. CTranslate2 translates it without PyTorch."""
    from rich.console import Console

    if output.exists() and not force:
        raise InputError("something is there already.", where=str(output), remedy="Give another -o, or --force.")
    with Console(stderr=True).status("Compiling …"):
        from transduce.bundle import Bundle
        from transduce.interop.ctranslate2 import compile_model

        bundle = Bundle.open(model)
        vocabularies = bundle.vocabularies()
        compile_model(bundle.model(), vocabularies, output, quantization)
    size = sum(file.stat().st_size for file in output.rglob("*")) / 1e6
    names = " and ".join(str(model / name) for name in vocabularies.files())
    typer.echo(f"Wrote {output} ({size:.1f} MB). Its tokenizer is {names}.")
