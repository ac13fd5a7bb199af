"""Vocabularies that others have learned: their own ways of cutting a text, behind our ids."""

from transduce.text.foreign.tokenizer import ForeignTokenizer, foreign_document

__all__ = ["ForeignTokenizer", "foreign_document"]
