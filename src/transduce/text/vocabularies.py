"""The vocabularies of the two sides: one that they share, or one each."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from transduce.errors import InputError
from transduce.text.foreign.tokenizer import ForeignTokenizer, Side
from transduce.text.languages import tag_for, tagged_language
from transduce.text.normalise import Normalisation
from transduce.text.tokenizer import SubwordKind, Tokenizer

__all__ = ["Vocabularies", "read_vocabulary", "vocabulary_files", "vocabulary_of"]


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
        split_marks: bool = True,
    ) -> Vocabularies:
        """Learn from pairs of texts: one vocabulary of all, or one of `vocab_size` a side.

        `languages` are those that a source can be asked to become: each gets a tag (see `encode_sources`).
        """

        def learned(texts: Iterable[str], tags: Sequence[str]) -> Tokenizer:
            return Tokenizer.learn(texts, vocab_size, kind, protected, tags, split_marks=split_marks)

        tags = [tag_for(language) for language in languages]
        if shared:
            one = learned((text for pair in pairs for text in pair), tags)
            return cls(one, one)
        return cls(learned((source for source, _ in pairs), tags), learned((target for _, target in pairs), ()))

    @classmethod
    def load(cls, directory: Path, shared: bool, normalisation: Normalisation | None = None) -> Vocabularies:
        """Read the files of a directory; texts go through these rules before they are encoded."""
        files = vocabulary_files(shared)
        source = read_vocabulary(directory / files[0])
        if not shared:
            target = read_vocabulary(directory / files[1], "target")
        elif isinstance(source, ForeignTokenizer):
            target = source.other_side()
        else:
            target = source
        return cls(source, target).with_rules(normalisation or Normalisation())

    def with_rules(self, normalisation: Normalisation) -> Vocabularies:
        """The same vocabularies for texts that go through these rules first."""
        source = self.source.with_letters(normalisation.source)
        if self.source is self.target and normalisation.source == normalisation.target:
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

    @property
    def languages(self) -> list[str]:
        """The languages that there are tags for."""
        if self.source.frame:
            return list(self.source.frame.languages)
        return list(filter(None, map(tagged_language, self.source.tag_names)))

    def encode_sources(self, texts: Sequence[str], to: str | None = None) -> list[list[int]]:
        """Ids of source texts, each behind the tag of the language that it is to become; empty texts stay empty."""
        return self.tagged(self.source.encode_batch(texts), to)

    def tagged(self, ids: list[list[int]], to: str | None) -> list[list[int]]:
        """Ids of sources, each with what stands around it: the tag of the language that it is to become, if any."""
        before, after = self.around_source(to)
        return [[*before, *row, *after] if row else row for row in ids] if before or after else ids

    def around_source(self, to: str | None) -> tuple[list[int], list[int]]:
        """The ids before and after a source that is to become a language; the end of a sentence is none of them."""
        frame = self.source.frame
        if frame is None:
            return ([] if to is None else [self.source.tag(tag_for(to))]), []
        before, after = frame.around_source(to)
        return [*map(self.source.tag, before)], [*map(self.source.tag, after)]

    def start(self, to: str | None = None) -> list[int]:
        """The ids that a decoder reads before it writes a language, behind the one that starts every sentence."""
        return [self.target.tag(name) for name in self.target.frame.start(to)] if self.target.frame else []

    def encode_targets(self, texts: Sequence[str], to: str | None = None) -> list[list[int]]:
        """Ids of target texts, each behind what the decoder reads before it; empty texts stay empty."""
        start, rows = self.start(to), self.target.encode_batch(texts)
        return [[*start, *row] if row else row for row in rows] if start else rows

    def marks(self, to: str | None) -> tuple[list[int], list[int]]:
        """The ids that the rows of either side begin with when they are learned from: both, none or one has tags."""
        return self.around_source(to)[0], self.start(to)


def read_vocabulary(path: Path, side: Side = "source") -> Tokenizer:
    """The tokenizer of a file, as `vocabulary_of` makes it."""
    try:
        return vocabulary_of(path.read_bytes(), side)
    except InputError as error:
        raise InputError(error.what, where=str(path), remedy=error.remedy) from error


def vocabulary_of(contents: bytes, side: Side = "source") -> Tokenizer:
    """The tokenizer of a file's contents: one that was learned here, or one from elsewhere."""
    return ForeignTokenizer(contents, side) if ForeignTokenizer.wrote(contents) else Tokenizer(contents)


def vocabulary_files(shared: bool) -> tuple[str, ...]:
    """The files of a directory that hold its vocabularies."""
    return ("tokenizer.model",) if shared else ("source.model", "target.model")
