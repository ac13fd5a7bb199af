"""The option that says what runs a model."""

from __future__ import annotations

from typing import Annotated

import typer

from transduce.engines.engine import EngineName

__all__ = ["EngineOption"]

EngineOption = Annotated[
    EngineName,
    typer.Option(help="What runs the model; auto is CTranslate2 where it has been compiled for that, else PyTorch."),
]
