"""Search and scoring over any model that writes step by step: ids in, ids out, no text."""

from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.options import DecodingOptions
from transduce.decoding.scoring import score
from transduce.decoding.search import decode
from transduce.decoding.steps import Stepper

__all__ = ["DecodingOptions", "Hypothesis", "Stepper", "decode", "score"]
