"""Which engine runs a model."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from transduce.bundle import Bundle
from transduce.errors import BundleError, ConfigError
from transduce.text import Vocabularies

if TYPE_CHECKING:
    from transduce.engines.engine import Engine, EngineName
    from transduce.engines.torch_engine import TorchEngine

__all__ = ["chosen_engine"]


def chosen_engine(
    bundle: Bundle,
    vocabularies: Vocabularies,
    name: EngineName,
    torch_engine: Callable[[], TorchEngine],
    shortlist: bool = False,
    threads: int | None = None,
) -> Engine:
    """The engine of that name for a model; nothing is imported that it does not need.

    `torch_engine` gives the model in PyTorch, also to CTranslate2 for what it cannot do.
    """
    compiled = bundle.path / "ctranslate2"
    if shortlist and name not in ("auto", "ctranslate2"):
        called = "ONNX Runtime" if name == "onnx" else "PyTorch"
        raise ConfigError(f"{called} knows no shortlist.", remedy="Choose another engine, or leave the shortlist out.")
    if name == "auto":
        name = "ctranslate2" if shortlist or compiled.is_dir() else "torch" if bundle.has_weights else "onnx"
    if name == "torch":
        return torch_engine()
    if name == "torch-int8":
        from transduce.engines.torch_engine import TorchEngine

        return TorchEngine(bundle.model(), int8=True)
    if name == "onnx":
        exported = _made_for(bundle, "onnx", "ONNX Runtime")
        from transduce.engines.onnx_engine import OnnxEngine

        return OnnxEngine(exported)
    _made_for(bundle, "ctranslate2", "CTranslate2")
    from transduce.engines.ctranslate2_engine import CTranslate2Engine

    alone = not bundle.has_weights
    shares = threads is None
    return CTranslate2Engine(
        compiled, vocabularies, torch_engine, shortlist, workers=threads, alone=alone, shares=shares
    )


def _made_for(bundle: Bundle, tool: str, name: str) -> Path:
    """The folder of the model that holds it in another tool's format."""
    path = bundle.path / tool
    if not path.is_dir():
        raise BundleError(
            f"the model is not compiled for {name}.",
            where=str(bundle.path),
            remedy=f"Run: transduce export {bundle.path} --to {tool} -o {path}",
        )
    return path
