"""The vocabularies of the two sides: one that they share, or one each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.text.languages import tag_for
from transduce.text.normalise import Normalisation
from transduce.text.tokenizer import SubwordKind, Tokenizer

__all__ = ["Vocabularies", "vocabulary_files"]


@dataclass(frozen=True)
class Vocabularies:
    """What the text of each side is written in; if they share one vocabulary, both are the same tokenizer."""

    source: Tokenizer
    target: Tokenizer

    @classmethod
    def learn(
        cls,
        pairs: Sequence[tuple[str, str]],
        vocab_size: int,
        kind: SubwordKind = "bpe",
        *,
        shared: bool = True,
        protected: Sequence[str] = (),
        languages: Sequence[str] = (),
    ) -> Vocabularies:
        """Learn from pairs of texts: one vocabulary of all, or one of `vocab_size` a side.

        `languages` are those that a source can be asked to become: each gets a tag (see `encode_sources`).
        """
        tags = [tag_for(language) for language in languages]
        if shared:
            one = Tokenizer.learn((text for pair in pairs for text in pair), vocab_size, kind, protected, tags)
            return cls(one, one)
        return cls(
            Tokenizer.learn((source for source, _ in pairs), vocab_size, kind, protected, tags),
            Tokenizer.learn((target for _, target in pairs), vocab_size, kind, protected),
        )

    @classmethod
    def load(cls, directory: Path, shared: bool, normalisation: Normalisation | None = None) -> Vocabularies:
        """Read the files of a directory; texts go through these rules before they are encoded."""
        tokenizers = [Tokenizer.load(directory / name) for name in vocabulary_files(shared)]
        return cls(tokenizers[0], tokenizers[-1]).with_rules(normalisation or Normalisation())

    def with_rules(self, normalisation: Normalisation) -> Vocabularies:
        """The same vocabularies for texts that go through these rules first."""
        source = self.source.with_letters(normalisation.source)
        if self.shared and normalisation.source == normalisation.target:
            return Vocabularies(source, source)
        return Vocabularies(source, self.target.with_letters(normalisation.target))

    @property
    def normalisation(self) -> Normalisation:
        """The rules that texts of the two sides go through before they are encoded."""
        return Normalisation(self.source.letters, self.target.letters)

    @property
    def shared(self) -> bool:
        """Whether both sides use the same vocabulary, be it with other rules for what they read."""
        return self.source.model is self.target.model

    def files(self) -> dict[str, bytes]:
        """Names and contents of the files that hold them."""
        tokenizers = (self.source,) if self.shared else (self.source, self.target)
        models = (tokenizer.model for tokenizer in tokenizers)
        return dict(zip(vocabulary_files(self.shared), models, strict=True))

    def encode_sources(self, texts: Sequence[str], to: str | None = None) -> list[list[int]]:
        """Ids of source texts, each behind the tag of the language that it is to become; empty texts stay empty."""
        return self.tagged(self.source.encode_batch(texts), to)

    def tagged(self, ids: list[list[int]], to: str | None) -> list[list[int]]:
        """Ids of sources, each behind the tag of the language that it is to become."""
        if to is None:
            return ids
        tag = self.source.tag(tag_for(to))
        return [[tag, *row] if row else row for row in ids]


def vocabulary_files(shared: bool) -> tuple[str, ...]:
    """The files of a directory that hold its vocabularies."""
    return ("tokenizer.model",) if shared else ("source.model", "target.model")
