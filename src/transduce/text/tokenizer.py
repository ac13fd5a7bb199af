"""Text to ids and back: SentencePiece, learned on the user's own text."""

from __future__ import annotations

import io
import random
import re
from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from transduce.errors import ConfigError, InputError
from transduce.text.merge_dropout import MergeDropout
from transduce.text.normalise import SPACE_MARK, normalise
from transduce.text.slots import SLOT_SYMBOLS

if TYPE_CHECKING:
    import sentencepiece

    from transduce.text.frame import Frame

__all__ = ["BOS", "EOS", "MASK", "NEWLINE", "PAD", "UNKNOWN", "SubwordKind", "Tokenizer", "check_protected"]

PAD, BOS, EOS, UNKNOWN = 0, 1, 2, 3
SubwordKind = Literal["bpe", "unigram", "char"]

SMALLEST_VOCABULARY = 4 + 256 + 16
"""The special ids, a byte each for what is not in the vocabulary, and something to write with."""

FEW, MANY = 4, 256
"""Texts that are done one by one before SentencePiece has started a thread; texts from which a second thread pays."""
AT_ONCE = 1 << 14
"""Characters of a text that a vocabulary is learned from at a time: SentencePiece leaves out what is longer."""
NEWLINE = "\n"
"""A piece of its own in vocabularies of documents, which no other one holds."""
MASK = "<mask>"
"""The tag that stands for a hidden piece."""
BYTE = re.compile(r"<0x[0-9A-F]{2}>")
CONTINUATION = re.compile(r"<0x[89AB][0-9A-F]>")
"""A byte that goes on with a character."""
OURS = re.compile(r"<pad>|<s>|</s>|<unk>|<0x[0-9A-F]{2}>|<2[A-Za-z].*>")
"""Names of special ids, bytes and tags, which no text symbol may have."""


class Tokenizer:
    """A learned vocabulary. No character is ever lost: what has no piece of its own is written as bytes."""

    def __init__(self, model: bytes) -> None:
        import sentencepiece

        self.model = model
        """SentencePiece's own format: the contents of `tokenizer.model`."""
        self.letters = ""
        """Those that other signs are taken for in the texts that it reads; see `transduce.text.letters`."""
        self.frame: Frame | None = None
        """What stands around texts, in a vocabulary from elsewhere; else only a tag for the language to write."""
        try:
            if not model:  # which SentencePiece takes for no model yet
                raise OSError("empty file")
            self._processor: sentencepiece.SentencePieceProcessor = sentencepiece.SentencePieceProcessor(
                model_proto=model
            )
            self.size: int = self._processor.get_piece_size()
        except (RuntimeError, OSError) as error:
            raise InputError(
                "the tokenizer's file is damaged or is not a SentencePiece model.",
                remedy="Copy it again, or train again.",
            ) from error

    @classmethod
    def load(cls, path: Path) -> Tokenizer:
        """Read `tokenizer.model`."""
        try:
            return cls(path.read_bytes())
        except InputError as error:
            raise InputError(error.what, where=str(path), remedy=error.remedy) from error

    @classmethod
    def learn(
        cls,
        texts: Iterable[str],
        vocab_size: int,
        kind: SubwordKind = "bpe",
        protected: Sequence[str] = (),
        tags: Sequence[str] = (),
        documents: bool = False,
        split_marks: bool = True,
    ) -> Tokenizer:
        """Learn a vocabulary of at most `vocab_size` pieces from texts, which are normalised first.

        `protected` symbols are never split; `tags` (such as "<2de>") have ids but are never read out of a text. A text
        too small for the size gets as many pieces as it can bear. Of `documents` nothing is normalised: their
        spaces and line ends come back as they were (see `encode_document`). With `split_marks` no piece holds letters
        and marks at once; without, whatever stands between two spaces may become one.
        """
        if vocab_size < SMALLEST_VOCABULARY:
            raise ConfigError(
                f"a vocabulary of {vocab_size} is too small.", remedy=f"Use {SMALLEST_VOCABULARY} or more."
            )
        check_protected(protected)
        if documents:
            sentences = [line for text in texts for line in _plain(text).split(NEWLINE) if line]
        else:
            sentences = [text for text in map(normalise, texts) if text]
        sentences = [text[start : start + AT_ONCE] for text in sentences for start in range(0, len(text), AT_ONCE)]
        if not sentences:
            raise InputError("there is no text to learn a vocabulary from.", remedy="Check the corpus.")
        if kind == "char":  # has as many as there are
            vocab_size = SMALLEST_VOCABULARY + len(protected) + len(tags) + len(set().union(*sentences))
        settings = kind, protected, tags, documents, split_marks
        try:
            return cls(_train(iter(sentences), vocab_size, *settings))
        except RuntimeError as error:
            if needed := re.search(r"smaller than required_chars. \d+ vs (\d+)", str(error)):
                raise ConfigError(
                    f"a vocabulary of {vocab_size} is too small: letters, bytes and protected symbols alone are "
                    f"{needed.group(1)}.",
                    remedy="Use at least that many, better twice.",
                ) from error
            bearable = re.search(r"value <= (\d+)", str(error))
            if bearable is None:
                raise
            return cls(_train(iter(sentences), int(bearable.group(1)), *settings))

    def encode(self, text: str) -> list[int]:
        """Ids of a text, which is normalised first; without start or end of sentence."""
        ids: list[int] = self._processor.encode(self.normalise(text))
        return ids

    @property
    def sentencepiece(self) -> bytes | None:
        """The SentencePiece model that cuts texts; None where something else does."""
        return self.model

    def with_letters(self, letters: str) -> Tokenizer:
        """The same vocabulary for texts in which other signs are taken for these letters."""
        if letters == self.letters:
            return self
        other = copy(self)
        other.letters = letters
        return other

    def normalise(self, text: str) -> str:
        """A text as it is read: what decoding its ids gives back."""
        return normalise(text, self.letters)

    def encode_document(self, text: str) -> list[int]:
        """Ids of a text with its line ends and spaces as they are, in a vocabulary that was learned of documents."""
        ids: list[int] = self._processor.encode(_plain(text))
        return ids

    def encode_continued(self, text: str) -> list[int]:
        """Ids of a text that stands behind something else without a space, such as the full stop behind a word."""
        ids = self.encode(text)
        first = self.pieces(ids[:1])[0] if ids else ""
        if not first.startswith(SPACE_MARK) or text[:1].isspace():
            return ids
        if first == SPACE_MARK:
            return ids[1:]
        rest = self._id_of(first.removeprefix(SPACE_MARK))
        return ids if rest == UNKNOWN else [rest, *ids[1:]]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many texts at once."""
        if len(texts) <= FEW:
            return [self.encode(text) for text in texts]
        normalised = [self.normalise(text) for text in texts]
        ids: list[list[int]] = self._processor.encode(normalised, num_threads=1 if len(texts) <= MANY else -1)
        return ids

    def encode_sampled(self, texts: Sequence[str], dropout: float, generator: random.Random) -> list[list[int]]:
        """Ids of randomly cut texts (BPE-dropout); the same for generators of the same seed, in any process."""
        normalised = [self.normalise(text) for text in texts]
        return [
            self.encode(text)  # what must not be split is left to SentencePiece
            if any(symbol in text for symbol in self.protected)
            else self._merges.encode(text, dropout, generator)
            for text in normalised
        ]

    def cut(self, ids: Sequence[int], longest: int) -> list[list[int]]:
        """The ids of a text in parts of at most so many: cut before a word where one begins, never in a character."""
        parts, start = [], 0
        while len(ids) - start > longest:
            pieces = self.pieces(ids[start : start + longest + 1])
            latter = range(longest, longest // 2, -1)
            words = (place for place in latter if pieces[place].startswith(SPACE_MARK))
            characters = (place for place in latter if not CONTINUATION.fullmatch(pieces[place]))
            end = start + (next(words, 0) or next(characters, longest))
            parts.append(list(ids[start:end]))
            start = end
        return [*parts, list(ids[start:])]

    def knows(self, ids: Sequence[int]) -> bool:
        """Whether a letter or digit is among ids that is not written as bytes only."""
        pieces = (self._processor.id_to_piece(int(index)) for index in ids)
        return any(any(map(str.isalnum, piece)) and not BYTE.fullmatch(piece) for piece in pieces)

    def begins_word(self, ids: Sequence[int]) -> bool:
        """Whether ids start with a space."""
        return bool(ids) and self.pieces(ids[:1])[0].startswith(SPACE_MARK)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special ids are left out."""
        text: str = self._processor.decode([int(index) for index in ids if index > EOS])
        return text

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The texts of many ids at once."""
        rows = [[int(index) for index in ids if index > EOS] for ids in batch]
        if len(rows) <= FEW:
            return [self._processor.decode(row) for row in rows]
        texts: list[str] = self._processor.decode(rows, num_threads=1)
        return texts

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id, for people to look at; a leading ▁ is a space."""
        return [self._processor.id_to_piece(int(index)) for index in ids]

    def all_pieces(self) -> list[str]:
        """The piece of every id, in order."""
        return self.pieces(range(self.size))

    @cached_property
    def _merges(self) -> MergeDropout:
        ids = {piece: index for index, piece in enumerate(self.all_pieces())}
        last_byte = ids["<0xFF>"]  # learned pieces come after the special ones, the protected ones and the bytes
        learned = sorted(range(last_byte + 1, self.size), key=lambda index: -self._processor.get_score(index))
        ranks = {self._processor.id_to_piece(index): rank for rank, index in enumerate(learned)}
        return MergeDropout(ids, ranks)

    @property
    def before(self) -> list[int]:
        """What stands before a text that is read by itself; nothing, unless the vocabulary is from elsewhere."""
        return []

    def tag(self, name: str) -> int:
        """The id of a tag."""
        index: int = self._processor.piece_to_id(name)
        if index not in self.tags:
            raise InputError(f"the vocabulary has no tag {name!r}.", remedy="Train with it, or leave it out.")
        return index

    @cached_property
    def tags(self) -> list[int]:
        """The ids of all tags."""
        return [index for index in self._special if self._processor.is_control(index)]

    @property
    def tag_names(self) -> list[str]:
        """All tags."""
        return [self._processor.id_to_piece(index) for index in self.tags]

    @property
    def unwritten(self) -> tuple[int, ...]:
        """The ids that are no part of a text and do not end it: a model must never write them."""
        return (PAD, BOS, UNKNOWN, *self.tags)

    @cached_property
    def protected(self) -> list[str]:
        """The symbols that are never split."""
        return [self._processor.id_to_piece(i) for i in self._special if not self._processor.is_control(i)]

    @cached_property
    def slots(self) -> list[str]:
        """The symbols that stand for what must come through as it is; none if the model has not learned any."""
        return [symbol for symbol in SLOT_SYMBOLS if symbol in self.protected]

    def _id_of(self, piece: str) -> int:
        index: int = self._processor.piece_to_id(piece)
        return index

    @property
    def _special(self) -> range:
        """Tags and protected symbols stand between the unknown id and the bytes."""
        return range(UNKNOWN + 1, self._processor.piece_to_id("<0x00>"))


def check_protected(symbols: Sequence[str]) -> None:
    """Refuse symbols that could not be kept whole."""
    for number, symbol in enumerate(symbols):
        if not symbol or normalise(symbol) != symbol or " " in symbol:
            wrong = "is empty, or holds white space or characters that normalisation changes"
        elif OURS.fullmatch(symbol):
            wrong = "is the name of a special id"
        elif symbol in symbols[:number]:
            wrong = "is there twice"
        else:
            continue
        raise ConfigError(
            f"{symbol!r} cannot be protected: it {wrong}.", remedy="Protect symbols such as <br> or {name}."
        )


def _plain(text: str) -> str:
    """A document as it is, but for how its lines end and for the one character that SentencePiece takes for a space."""
    return text.replace("\r\n", NEWLINE).replace("\r", NEWLINE).replace(SPACE_MARK, "_")


def _train(
    sentences: Iterator[str],
    vocab_size: int,
    kind: SubwordKind,
    protected: Sequence[str],
    tags: Sequence[str],
    documents: bool,
    split_marks: bool,
) -> bytes:
    import sentencepiece

    model = io.BytesIO()
    sentencepiece.SentencePieceTrainer.train(
        sentence_iterator=sentences,
        model_writer=model,
        model_type=kind,
        vocab_size=vocab_size,
        pad_id=PAD,
        bos_id=BOS,
        eos_id=EOS,
        unk_id=UNKNOWN,
        byte_fallback=True,
        character_coverage=1.0 if kind == "char" else 0.9999,  # characters are all that such a vocabulary has
        hard_vocab_limit=kind != "char",
        add_dummy_prefix=not documents,
        split_by_unicode_script=split_marks,
        normalization_rule_name="identity",
        remove_extra_whitespaces=False,
        user_defined_symbols=[*protected, *[NEWLINE] * documents],
        control_symbols=list(tags),
        max_sentence_length=4 * AT_ONCE,  # in bytes, of which a character has at most four
        minloglevel=2,
    )
    return model.getvalue()
