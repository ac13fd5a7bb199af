"""Ways of others to cut a text into pieces: SentencePiece, `tokenizer.json`, subword-nmt. Ids are ours throughout."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Sequence
from typing import Any, Protocol

from transduce.errors import ConfigError, InputError
from transduce.text.foreign.subwords import CONTINUED, SubwordUnits
from transduce.text.normalise import SPACE_MARK
from transduce.text.tokenizer import UNKNOWN

__all__ = ["Processor", "TokenizerJson", "make_processor"]


class Processor(Protocol):
    """Cuts texts into pieces that have ids, and puts them together again."""

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts; what is in no piece is unknown."""

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Texts of ids, none of which is special."""

    def shown(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id for people to look at; a leading ▁ is a space."""


def make_processor(values: Any, names: list[str], special: frozenset[int]) -> Processor:
    """What a vocabulary's file describes; `names` are the pieces by id, of which `special` ones are no text."""
    try:
        kind = values["kind"]
        if kind == "sentencepiece":
            return SentencePieces(base64.b64decode(values["model"], validate=True), names, special)
        if kind == "tokenizer.json":
            return TokenizerJson(values["tokenizer"], values["ids"], names, special, bool(values["clean_up"]))
        if kind == "subword-nmt":
            return Units(SubwordUnits.parse(values["codes"]), names, special)
    except (KeyError, TypeError, AttributeError, binascii.Error) as error:
        raise InputError("the vocabulary's file is damaged.", remedy="Import the model again.") from error
    raise InputError(f"the vocabulary is of kind {kind!r}.", remedy="Update transduce.")


class SentencePieces:
    """A SentencePiece model whose pieces have ids of their own, as Marian and M2M-100 have it."""

    def __init__(self, model: bytes, names: list[str], special: frozenset[int]) -> None:
        import sentencepiece

        try:
            if not model:  # which SentencePiece takes for no model yet
                raise OSError("empty file")
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
        except (RuntimeError, OSError) as error:
            raise InputError("this is not a SentencePiece model, or a damaged one.", remedy="Copy it again.") from error
        self.model, self._names = model, names
        self._ids = {name: index for index, name in enumerate(names) if index > UNKNOWN and index not in special}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts."""
        rows = (self._processor.encode(text, out_type=str) for text in texts)
        return [[self._ids.get(piece, UNKNOWN) for piece in row] for row in rows]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Texts of ids."""
        texts = (self._processor.decode_pieces([self._names[index] for index in row]) for row in rows)
        return [text.replace(SPACE_MARK, " ").strip() for text in texts]

    def shown(self, ids: Sequence[int]) -> list[str]:
        """The pieces as they are."""
        return [self._names[index] for index in ids]


class TokenizerJson:
    """A `tokenizer.json`, run by Hugging Face's `tokenizers`."""

    def __init__(
        self, contents: str, theirs: Sequence[int], names: list[str], special: frozenset[int], clean_up: bool
    ) -> None:
        """Of the file's contents; `theirs` are their ids by ours. With `clean_up`, no space is before a full stop."""
        self._tokenizer = read_tokenizer_json(contents)
        self._tokenizer.no_padding()
        self._tokenizer.no_truncation()
        self._tokenizer.encode_special_tokens = True  # text that looks like a special token is only text
        self._theirs, self._names, self._clean_up = list(theirs), names, clean_up
        ordinary = (place for place in range(UNKNOWN + 1, len(self._theirs)) if place not in special)
        self._ours = {self._theirs[place]: place for place in ordinary}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts."""
        found = self._tokenizer.encode_batch_fast(list(texts), add_special_tokens=False)
        return [[self._ours.get(index, UNKNOWN) for index in each.ids] for each in found]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Texts of ids."""
        texts = self._tokenizer.decode_batch([[self._theirs[index] for index in row] for row in rows])
        return [_cleaned(text) for text in texts] if self._clean_up else texts

    def shown(self, ids: Sequence[int]) -> list[str]:
        """The pieces as they are."""
        return [self._names[index] for index in ids]


class Units:
    """Words of a dictionary, cut by the merges of subword-nmt: what goes on within a word ends in @@."""

    def __init__(self, units: SubwordUnits, names: list[str], special: frozenset[int]) -> None:
        self._units, self._names = units, names
        self._ids = {name: index for index, name in enumerate(names) if index > UNKNOWN and index not in special}

    def encode(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of texts, whose words stand between spaces."""
        return [[self._ids.get(unit, UNKNOWN) for unit in self._units.cut(text)] for text in texts]

    def decode(self, rows: Sequence[Sequence[int]]) -> list[str]:
        """Texts of ids."""
        texts = (" ".join(self._names[index] for index in row) for row in rows)
        return [f"{text} ".replace(f"{CONTINUED} ", "").strip() for text in texts]

    def shown(self, ids: Sequence[int]) -> list[str]:
        """As SentencePiece would write them: whether a unit begins a word is seen on the one before."""
        names = [self._names[index] for index in ids]
        inside = [False, *(name.endswith(CONTINUED) for name in names[:-1])]
        return [
            name.removesuffix(CONTINUED) if within else SPACE_MARK + name.removesuffix(CONTINUED)
            for name, within in zip(names, inside, strict=False)
        ]


def read_tokenizer_json(contents: str) -> Any:
    """The tokenizer of a `tokenizer.json`."""
    try:
        import tokenizers
    except ImportError as error:
        raise ConfigError(
            "the model's vocabulary is a tokenizer.json, and `tokenizers`, which reads it, is not installed.",
            remedy='Run: pip install "transduce[huggingface]"',
        ) from error
    try:
        json.loads(contents)  # whose depth is limited, unlike that of what reads it next
        return tokenizers.Tokenizer.from_str(contents)
    except (KeyboardInterrupt, SystemExit, MemoryError):
        raise
    except BaseException as error:  # it raises bare Exceptions, and panics that are not even these
        raise InputError("this is not a tokenizer.json that can be read.", remedy="Copy it again.") from error


MARKS = {" .": ".", " ?": "?", " !": "!", " ,": ",", " ' ": "'", " n't": "n't", " 'm": "'m", " 's": "'s"}
MARKS |= {" 've": "'ve", " 're": "'re"}


def _cleaned(text: str) -> str:
    """Without the spaces before marks that WordPiece cannot know of: as `transformers` writes it."""
    for before, after in MARKS.items():
        text = text.replace(before, after)
    return text
