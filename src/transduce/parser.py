"""A sentence in, its tree out: a translator whose target language is brackets (§6.3)."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from transduce.errors import BundleError, InputError
from transduce.text.penn import split_words
from transduce.text.trees import SymbolIds, Tree
from transduce.translator import Translator

if TYPE_CHECKING:
    from transduce.decoding import DecodingOptions
    from transduce.engines.engine import Engine
    from transduce.text import Vocabularies

__all__ = ["Parser"]


class Parser:
    """A loaded model that writes trees.

    >>> parser = Parser.load("my-parser")
    >>> print(parser.parse("The cat sat."))
    (S (NP (XX The) (XX cat)) (VP (XX sat)) (XX .))
    """

    def __init__(self, vocabularies: Vocabularies, engine: Engine) -> None:
        self.vocabularies, self.engine = vocabularies, engine
        self.symbols = SymbolIds.of(vocabularies.target)

    @classmethod
    def load(cls, model: str | Path) -> Parser:
        """Load a model directory that has been trained on trees."""
        translator = Translator.load(model, engine="torch")
        try:
            return cls(translator.vocabularies, translator.engine)
        except InputError as error:
            raise BundleError(
                f"this model is no parser: {error.what}", where=str(translator.path), remedy=error.remedy
            ) from error

    @overload
    def parse(self, sentence: str, **options: Any) -> Tree: ...
    @overload
    def parse(self, sentence: Sequence[str], **options: Any) -> list[Tree]: ...
    def parse(self, sentence: str | Sequence[str], **options: Any) -> Tree | list[Tree]:
        """The tree of a sentence, or of each of a list of them; `options` are those of DecodingOptions, such as beam=1.

        Punctuation and endings such as n't count as words of their own.
        """
        if isinstance(sentence, str):
            return self.parse_words([split_words(sentence)], **options)[0]
        return self.parse_words([split_words(each) for each in sentence], **options)

    def parse_words(self, sentences: Sequence[Sequence[str]], **options: Any) -> list[Tree]:
        """The trees of sentences that are words already."""
        for index, words in enumerate(sentences):
            if not words:
                raise InputError(f"sentence {index + 1} has no words.", remedy="Leave empty sentences out.")
        sources = self.vocabularies.source.encode_batch([" ".join(words) for words in sentences])
        decoded = self.engine.decode(sources, self.options(sentences, **options))
        written = self.vocabularies.target.decode_batch(hypotheses[0].tokens for hypotheses in decoded)
        return [Tree.of_symbols(symbols, words) for symbols, words in zip(written, sentences, strict=True)]

    def options(self, sentences: Sequence[Sequence[str]], **overrides: Any) -> DecodingOptions:
        """How the trees of sentences, given as words, are decoded: nothing but a tree over them can be found."""
        from transduce.decoding.trees import tree_options

        return tree_options(self.symbols, [self.symbols.of_words(words) for words in sentences], **overrides)
