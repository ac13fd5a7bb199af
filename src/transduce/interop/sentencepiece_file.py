"""What stands in a SentencePiece file: its pieces with their scores, and how a text is prepared for them.

SentencePiece itself tells pieces and scores, but not by which method they are put together. The file is a protocol
buffer (sentencepiece_model.proto), of which these few fields are read.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from transduce.errors import InputError

__all__ = ["Method", "Piece", "SentencePieceFile"]

Method = Literal["unigram", "bpe", "word", "char"]
METHODS: tuple[Method, ...] = ("unigram", "bpe", "word", "char")
NORMAL, USER_DEFINED, BYTE = 1, 4, 6
"""Types of pieces; the others are special."""
VARINT, EIGHT_BYTES, LENGTH, FOUR_BYTES = 0, 1, 2, 5
"""How a field is written."""


@dataclass(frozen=True)
class Piece:
    """A piece, its score and its type."""

    text: str
    score: float
    type: int

    @property
    def learned(self) -> bool:
        """Whether it is a part of texts that was found in texts."""
        return self.type == NORMAL

    @property
    def protected(self) -> bool:
        """Whether it is a symbol that is never split."""
        return self.type == USER_DEFINED

    @property
    def byte(self) -> bool:
        """Whether it is a byte of what has no other piece."""
        return self.type == BYTE


@dataclass(frozen=True)
class SentencePieceFile:
    """What is needed to do the same elsewhere."""

    pieces: list[Piece]
    """By SentencePiece's own ids."""
    method: Method
    rules: bytes
    """Which characters become which, compiled; empty where they stay."""
    space_before: bool
    """Whether a text is read as if a space stood before it."""
    single_spaces: bool
    """Whether spaces at the ends are left out, and only one is read of several."""

    @classmethod
    def parse(cls, contents: bytes) -> SentencePieceFile:
        """Of a file's contents."""
        pieces, method, rules, flags = [], 1, b"", {3: 1, 4: 1}
        try:
            for number, value in _fields(contents):
                if number == 1 and isinstance(value, bytes):
                    found = dict(_fields(value))
                    score = struct.unpack("<f", bytes(found.get(2, b"\0" * 4)))[0]
                    pieces.append(Piece(bytes(found[1]).decode(), score, int(found.get(3, NORMAL))))
                elif number == 2 and isinstance(value, bytes):
                    method = int(dict(_fields(value)).get(3, 1))
                elif number == 3 and isinstance(value, bytes):
                    found = dict(_fields(value))
                    rules = bytes(found.get(2, b""))
                    flags |= {name: int(found[name]) for name in (3, 4) if name in found}
            return cls(pieces, METHODS[method - 1], rules, bool(flags[3]), bool(flags[4]))
        except (ValueError, KeyError, IndexError, TypeError, struct.error) as error:
            raise InputError("this is not a SentencePiece model, or a damaged one.", remedy="Copy it again.") from error

    @property
    def falls_back_to_bytes(self) -> bool:
        """Whether what has no piece is written as bytes."""
        return any(piece.byte for piece in self.pieces)


def _fields(message: bytes) -> Iterator[tuple[int, int | bytes]]:
    """The fields of a message: their numbers, and whole numbers or bytes."""
    place = 0

    def varint() -> int:
        nonlocal place
        value, shift = 0, 0
        while True:
            byte = message[place]
            place += 1
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value

    while place < len(message):
        key = varint()
        kind = key & 7
        if kind == VARINT:
            yield key >> 3, varint()
            continue
        if kind not in (EIGHT_BYTES, LENGTH, FOUR_BYTES):
            raise ValueError(f"a field is written in the way {kind}")
        length = varint() if kind == LENGTH else {EIGHT_BYTES: 8, FOUR_BYTES: 4}[kind]
        if place + length > len(message):
            raise ValueError("the file is cut off")
        yield key >> 3, message[place : place + length]
        place += length
