"""transduce: parallel text in, a translator of your own out.

>>> from transduce import Translator
>>> Translator.load("my-model").translate("How are you?").text

Importing this package is instant: torch is loaded only by what needs it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from transduce.translator import Translator

__all__ = ["Translator", "__version__"]

__version__ = "0.1.0"


def __getattr__(name: str) -> Any:
    if name == "Translator":
        from transduce.translator import Translator

        return Translator
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
