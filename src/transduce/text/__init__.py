"""Text in, ids out, and back: no tensors here."""

from transduce.text.normalise import NORMALISATION, normalise
from transduce.text.tokenizer import Tokenizer

__all__ = ["NORMALISATION", "Tokenizer", "normalise"]
