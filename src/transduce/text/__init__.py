"""Text in, ids out, and back: no tensors here."""

from transduce.text.languages import Direction
from transduce.text.normalise import NORMALISATION, normalise
from transduce.text.tokenizer import Tokenizer
from transduce.text.vocabularies import Vocabularies

__all__ = ["NORMALISATION", "Direction", "Tokenizer", "Vocabularies", "normalise"]
