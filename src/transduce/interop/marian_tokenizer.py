"""Marian's tokenizer: SentencePiece models as they are, our ids, and at most one tag before a source."""

from __future__ import annotations

import json
from typing import Any

from transduce.text import Vocabularies
from transduce.text.frame import TARGET
from transduce.text.languages import Direction, tag_for
from transduce.text.tokenizer import Tokenizer

__all__ = ["files", "fits"]


def fits(vocabularies: Vocabularies) -> bool:
    """Whether it can do what these vocabularies do."""
    frame = vocabularies.source.frame
    asked = frame is None or (tuple(frame.before_source) in ((), (TARGET,)) and not frame.after_source)
    pieces = all(each.sentencepiece is not None for each in (vocabularies.source, vocabularies.target))
    return pieces and asked and not vocabularies.start(None if frame is None else frame.target)


def files(vocabularies: Vocabularies, languages: Direction) -> dict[str, bytes]:
    """The files that hold it."""
    settings = {
        "tokenizer_class": "MarianTokenizer",
        "source_lang": languages.source,
        "target_lang": languages.target,
        "unk_token": "<unk>",
        "eos_token": "</s>",
        "pad_token": "<pad>",
        "separate_vocabs": not vocabularies.shared,
        "model_max_length": 512,
        "clean_up_tokenization_spaces": False,
    }
    source, target = vocabularies.source.sentencepiece, vocabularies.target.sentencepiece
    assert source is not None, "it was found to fit"
    assert target is not None, "it was found to fit"
    found = {
        "tokenizer_config.json": _json(settings),
        "source.spm": source,
        "target.spm": target,
        "vocab.json": _ids(vocabularies.source),
    }
    return found if vocabularies.shared else found | {"target_vocab.json": _ids(vocabularies.target)}


def _ids(tokenizer: Tokenizer) -> bytes:
    """The id of each piece; tags by the names that it reads before a text."""
    tags = {tag_for(name): f">>{name}<<" for name in map(_language, tokenizer.pieces(tokenizer.tags)) if name}
    return _json({tags.get(piece, piece): index for index, piece in enumerate(tokenizer.all_pieces())})


def _language(tag: str) -> str:
    """The language of a tag such as <2de>; nothing where it is another kind of tag."""
    return tag[2:-1] if tag.startswith("<2") and tag.endswith(">") else ""


def _json(values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False, indent=2).encode() + b"\n"
