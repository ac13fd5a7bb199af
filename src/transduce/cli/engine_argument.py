"""The options that say what runs a model, and which models have a say beside it."""

from __future__ import annotations

from typing import Annotated

import typer

from transduce.engines.engine import EngineName

__all__ = ["BackOption", "BesideOption", "EngineOption"]

EngineOption = Annotated[
    EngineName,
    typer.Option(help="What runs the model; auto is CTranslate2 where it has been compiled for that, else PyTorch."),
]
BesideOption = Annotated[
    list[str] | None,
    typer.Option(
        "--with",
        help="Another model of the same vocabulary, such as one of another seed, that has a say in every word: an "
        "ensemble. Better, and slower: PyTorch runs it. Several --with are several more.",
    ),
]
BackOption = Annotated[
    str | None,
    typer.Option(
        "--back",
        help="A model of the other direction, such as de-en for en-de: of the hypotheses, take the one from which it "
        "finds the way back. Better, and slower; --beam 8 gives it more to choose from.",
    ),
]
