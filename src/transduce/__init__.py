"""transduce: parallel text in, a translator of your own out.

Importing this package is instant: torch is loaded by `transduce.model` and `transduce.decoding` only.
"""

from __future__ import annotations

__all__ = ["__version__"]

__version__ = "0.1.0"
