"""A tokenizer that someone else has learned, with our ids: our interface, and their way of cutting a text behind it."""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Literal

from transduce.errors import ConfigError, InputError
from transduce.text.foreign.processors import SentencePieces, make_processor
from transduce.text.frame import SOURCE, TARGET, Frame
from transduce.text.normalise import normalise
from transduce.text.tokenizer import BYTE, EOS, UNKNOWN, Tokenizer

__all__ = ["ForeignTokenizer", "Side", "foreign_document"]

FORMAT = 1
"""Of the file; raised when older versions of transduce can no longer read it."""
FIRST = ("<pad>", "<s>", "</s>", "<unk>")
"""The names of the first ids, which are ours everywhere."""
Side = Literal["source", "target"]


def foreign_document(
    names: Sequence[str],
    special: Iterable[int],
    processors: Mapping[str, Mapping[str, Any]],
    frame: Frame | None = None,
) -> bytes:
    """The contents of a vocabulary's file.

    `names` are the pieces by our ids, each once, of which those in `special` are no text. `processors` are one for
    both sides ("both") or one each ("source", "target"); their kinds are those of `make_processor`.
    """
    document = {
        "foreign_tokenizer": FORMAT,
        "frame": (frame or Frame()).as_dict(),
        "special": sorted(special),
        "processors": {side: dict(values) for side, values in processors.items()},
        "pieces": list(names),
    }
    return json.dumps(document, ensure_ascii=False).encode()


class ForeignTokenizer(Tokenizer):
    """A vocabulary from elsewhere. Texts are read as they are, and what has no piece may be lost: it is unknown."""

    def __init__(self, model: bytes, side: Side = "source") -> None:
        """Of the contents of its file, and for the texts of a side."""
        self.model = model
        self.letters = ""
        document = _parsed(model)
        self.frame: Frame = Frame.parse(document["frame"])
        self._names: list[str] = document["pieces"]
        self._no_text = frozenset(document["special"])
        processors = document["processors"]
        values = processors.get("both") or processors.get(side)
        if values is None:
            raise InputError(f"the vocabulary has nothing for the {side}.", remedy="Import the model again.")
        self.described: Mapping[str, Any] = values
        """How texts are cut, as the file says it: see `make_processor`; "ids" are theirs by ours, where known."""
        self._theirs = make_processor(values, self._names, self._no_text)
        self._tags: dict[str, int] = {self._names[index]: index for index in sorted(self._no_text)}
        self.size = len(self._names)

    @staticmethod
    def wrote(contents: bytes) -> bool:
        """Whether these are the contents of such a file."""
        return contents.lstrip()[:1] == b"{"

    def other_side(self) -> ForeignTokenizer:
        """The same vocabulary for the texts of the target."""
        return ForeignTokenizer(self.model, "target")

    @property
    def sentencepiece(self) -> bytes | None:
        """The SentencePiece model that cuts texts of this side; None where something else does."""
        return self._theirs.model if isinstance(self._theirs, SentencePieces) else None

    def normalise(self, text: str) -> str:
        """A text as it is read: as it is, unless signs in it are taken for letters."""
        return normalise(text, self.letters) if self.letters else text

    def encode(self, text: str) -> list[int]:
        """Ids of a text; without start or end of sentence."""
        return self.encode_batch([text])[0]

    def encode_batch(self, texts: Sequence[str]) -> list[list[int]]:
        """Ids of many texts at once."""
        rows = self._theirs.encode([self.normalise(text) for text in texts])
        return [row if text.strip() else [] for text, row in zip(texts, rows, strict=True)]

    def encode_document(self, text: str) -> list[int]:
        """Ids of a text with its line ends and spaces as they are, if the vocabulary has any."""
        return self._theirs.encode([text])[0] if text else []

    def encode_sampled(self, texts: Sequence[str], dropout: float, generator: random.Random) -> list[list[int]]:
        """Is refused: what others have learned is cut in one way only."""
        raise ConfigError(
            f"tokenizer.dropout={dropout} cuts texts at random, which an imported vocabulary cannot.",
            remedy="Use tokenizer.dropout=0.",
        )

    def knows(self, ids: Sequence[int]) -> bool:
        """Whether a letter or digit is among ids that is not unknown or written as bytes only."""
        names = (self._names[index] for index in ids if index > UNKNOWN and index not in self._no_text)
        return any(any(map(str.isalnum, name)) and not BYTE.fullmatch(name) for name in names)

    def decode(self, ids: Iterable[int]) -> str:
        """The text of ids; special ids are left out."""
        return self.decode_batch([ids])[0]

    def decode_batch(self, batch: Iterable[Iterable[int]]) -> list[str]:
        """The texts of many ids at once."""
        left_out = {*range(EOS + 1), UNKNOWN, *self._no_text}
        return self._theirs.decode([[int(index) for index in ids if index not in left_out] for ids in batch])

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """The piece of each id, for people to look at; a leading ▁ is a space."""
        shown = self._theirs.shown([int(index) for index in ids])
        special = (index <= UNKNOWN or index in self._no_text for index in ids)
        return [self._names[i] if no_text else piece for i, piece, no_text in zip(ids, shown, special, strict=True)]

    def all_pieces(self) -> list[str]:
        """The piece of every id, in order, each once."""
        return list(self._names)

    @property
    def before(self) -> list[int]:
        """What stands before a text that is read by itself, such as BERT's [CLS]; tags of languages are not."""
        return [self.tag(name) for name in self.frame.before_source if name not in (SOURCE, TARGET)]

    def tag(self, name: str) -> int:
        """The id of a tag, or of what starts or ends a text."""
        if name in self._tags or name in FIRST:
            return self._tags[name] if name in self._tags else FIRST.index(name)
        raise InputError(f"the vocabulary has no tag {name!r}.", remedy="Leave it out.")

    @property
    def tags(self) -> list[int]:
        """The ids of all that is no text: language codes and the like."""
        return list(self._tags.values())

    @property
    def protected(self) -> list[str]:
        """None: what others have learned may be split."""
        return []

    def _id_of(self, piece: str) -> int:
        return self._names.index(piece) if piece in self._names else UNKNOWN


def _parsed(model: bytes) -> dict[str, Any]:
    """The document of a file, whose parts are found to be of the right kinds."""
    try:
        document = json.loads(model)
        version = document["foreign_tokenizer"]
        if version != FORMAT:
            raise InputError(f"the vocabulary has format {version!r}.", remedy="Update transduce.")
        names, special = document["pieces"], document["special"]
        sound = (
            isinstance(names, list)
            and all(isinstance(name, str) for name in names)
            and tuple(names[: len(FIRST)]) == FIRST
            and len(set(names)) == len(names)
            and isinstance(special, list)
            and all(type(index) is int and UNKNOWN < index < len(names) for index in special)
            and isinstance(document["processors"], dict)
            and "frame" in document
        )
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise InputError("the vocabulary's file is damaged.", remedy="Import the model again.") from error
    if not sound:
        raise InputError("the vocabulary's file is damaged.", remedy="Import the model again.")
    return dict(document)
