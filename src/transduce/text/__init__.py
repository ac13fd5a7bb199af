"""Text in, ids out, and back: no tensors here."""

from transduce.text.languages import Direction
from transduce.text.normalise import NORMALISATION, Normalisation, normalise
from transduce.text.tokenizer import Tokenizer
from transduce.text.vocabularies import Vocabularies

__all__ = ["NORMALISATION", "Direction", "Normalisation", "Tokenizer", "Vocabularies", "normalise"]
