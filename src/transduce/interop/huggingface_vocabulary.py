"""A model's vocabulary as Hugging Face's `PreTrainedTokenizerFast` reads it, and which ids its pieces have there.

A vocabulary that was learned here keeps its ids. One that was imported goes back with those that it came with.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import nn

from transduce.bundle import Bundle
from transduce.errors import ConfigError
from transduce.interop.numbering import Numbering, same_rows
from transduce.interop.renumber import FIRST, Renumbering
from transduce.interop.sentencepiece_file import SentencePieceFile
from transduce.interop.tokenizer_json import framed, sentencepiece_tokenizer
from transduce.text import Vocabularies
from transduce.text.foreign import ForeignTokenizer
from transduce.text.foreign.processors import read_tokenizer_json
from transduce.text.tokenizer import BOS, EOS, MASK, UNKNOWN, Tokenizer

__all__ = ["HuggingFaceVocabulary"]

INPUTS = ["input_ids", "attention_mask"]


@dataclass(frozen=True)
class HuggingFaceVocabulary:
    """A vocabulary there."""

    tokenizer: Any
    """Of the package `tokenizers`; it puts around each text what the model reads there."""
    numbering: Numbering
    before: Sequence[str]
    """What stands before a text."""
    roles: Mapping[str, str]
    """What tokens are there for: which one ends a text, which stands for padding."""
    clean_up: bool = False
    """Whether spaces before marks are left out of what is written."""

    @classmethod
    def of(cls, bundle: Bundle, model: nn.Module, to: str | None) -> HuggingFaceVocabulary:
        """That of a model, for texts that are to become a language, if it asks for one."""
        vocabularies = bundle.vocabularies()
        source = vocabularies.source
        if not vocabularies.shared:
            raise ConfigError(
                "its sides have a vocabulary each, which only Marian's tokenizer has, and this model is no Marian.",
                remedy="Train it with tokenizer.shared=true, or export it for CTranslate2.",
            )
        known = _imported(source, model, bundle) if isinstance(source, ForeignTokenizer) else _learned(source)
        return known._around_texts(vocabularies, bundle, to)

    def _around_texts(self, vocabularies: Vocabularies, bundle: Bundle, to: str | None) -> HuggingFaceVocabulary:
        """With what the model reads before and after each text."""
        numbers = self.numbering

        def names(ids: Sequence[int]) -> list[str]:
            return [self.tokenizer.id_to_token(index) for index in numbers.source(ids)]

        roles = dict(self.roles)
        if bundle.config.network == "decoder-only":
            before, after = names([BOS]), []
        elif bundle.config.network == "encoder-only":
            before, after = names(vocabularies.source.before), names([EOS])
            roles |= {"sep_token": after[0], "cls_token": before[0] if before else after[0]}
        else:
            around = vocabularies.around_source(to)
            before, after = names(around[0]), names([*around[1], EOS])
        framed(self.tokenizer, before, after)
        return replace(self, before=before, roles=roles)

    def files(self, longest: int, languages: Mapping[str, str | None]) -> dict[str, bytes]:
        """The files that hold it; a text has at most so many tokens."""
        reads_only = "sep_token" in self.roles
        settings = {
            "tokenizer_class": "PreTrainedTokenizerFast",
            **self.roles,
            **{name: value for name, value in languages.items() if value},
            "model_max_length": longest,
            "model_input_names": [INPUTS[0], "token_type_ids", INPUTS[1]] if reads_only else INPUTS,
            "clean_up_tokenization_spaces": self.clean_up,
        }
        return {
            "tokenizer.json": self.tokenizer.to_str(pretty=True).encode() + b"\n",
            "tokenizer_config.json": json.dumps(settings, ensure_ascii=False, indent=2).encode() + b"\n",
        }


def _learned(vocabulary: Tokenizer) -> HuggingFaceVocabulary:
    """Of SentencePiece, learned here."""
    pieces = vocabulary.all_pieces()
    special = {pieces[index]: index for index in (*range(UNKNOWN + 1), *vocabulary.tags)}
    ids = {piece: index for index, piece in enumerate(pieces) if piece not in special}
    mask = {"mask_token": MASK} if MASK in special else {}
    file = SentencePieceFile.parse(vocabulary.model)
    tokenizer = sentencepiece_tokenizer(file, ids, special, FIRST[UNKNOWN], mask.get("mask_token"), normalises=True)
    return HuggingFaceVocabulary(tokenizer, Numbering.same(vocabulary.size), (), _roles(FIRST) | mask)


def _roles(first: Sequence[str | None]) -> dict[str, str]:
    """What the first four ids are there for, by what they are called there."""
    names = ("pad_token", "bos_token", "eos_token", "unk_token")
    return {role: name for role, name in zip(names, first, strict=True) if name is not None}


def _imported(vocabulary: ForeignTokenizer, model: nn.Module, bundle: Bundle) -> HuggingFaceVocabulary:
    """Of someone else, with their ids."""
    described = vocabulary.described
    theirs = described.get("ids")
    if theirs is None:
        raise ConfigError(
            f"its vocabulary is one of {described['kind']}, which has no counterpart there but Marian's tokenizer.",
            remedy="Export it for CTranslate2 instead; or import it again, if it was a model of Hugging Face's.",
        )
    numbers = Renumbering.restored(theirs)
    ours = numbers.ours()
    tokenizer, clean_up = _their_tokenizer(vocabulary, numbers)
    rows, ids = [ours[index] for index in range(max(theirs) + 1)], dict(enumerate(theirs))
    if BOS in numbers.copies and not same_rows(model, BOS, ours[theirs[BOS]]):  # training has set them apart
        ids[BOS] = _added(tokenizer, FIRST[BOS], rows)
    names = [tokenizer.id_to_token(ids[index]) for index in range(len(FIRST))]
    if UNKNOWN in numbers.copies:
        names[UNKNOWN] = None
    if BOS in numbers.copies and bundle.config.network != "decoder-only":
        names[BOS] = None
    roles = _roles(names)
    if MASK in vocabulary.pieces(vocabulary.tags):
        roles["mask_token"] = tokenizer.id_to_token(ids[vocabulary.tag(MASK)])
    ends = inside = None
    if vocabulary.frame.after_source and bundle.config.source_language:
        ends = ids[vocabulary.tag(bundle.config.source_language)]
        inside = vocabulary.tag(vocabulary.frame.after_source[-1])
    return HuggingFaceVocabulary(tokenizer, Numbering(rows, ids, ends, inside), (), roles, clean_up)


def _their_tokenizer(vocabulary: ForeignTokenizer, numbers: Renumbering) -> tuple[Any, bool]:
    """The tokenizer that was imported, and whether it leaves spaces out."""
    described, theirs = vocabulary.described, numbers.theirs
    if described["kind"] == "tokenizer.json":
        tokenizer = read_tokenizer_json(described["tokenizer"])
        tokenizer.no_padding()
        tokenizer.no_truncation()
        return tokenizer, bool(described["clean_up"])
    model = vocabulary.sentencepiece
    assert model is not None, "no other kind has ids"
    pieces = vocabulary.all_pieces()
    no_text = {*range(UNKNOWN + 1), *vocabulary.tags} - numbers.copies
    special = {pieces[index]: theirs[index] for index in sorted(no_text) if not pieces[index].startswith("<unused ")}
    ids = {piece: theirs[index] for index, piece in enumerate(pieces) if index not in {*no_text, *numbers.copies}}
    return sentencepiece_tokenizer(SentencePieceFile.parse(model), ids, special, FIRST[UNKNOWN]), False


def _added(tokenizer: Any, name: str, rows: list[int]) -> int:
    """The id of one more token, in a row that no piece has or behind all of them."""
    from tokenizers import AddedToken

    while tokenizer.token_to_id(name) is not None:
        name += "'"
    tokenizer.add_special_tokens([AddedToken(name, special=True, normalized=False)])
    index: int = tokenizer.token_to_id(name)
    rows[index : index + 1] = [BOS]
    return index
