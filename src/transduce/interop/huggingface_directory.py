"""A model directory of ours as one for Hugging Face's `transformers`: the model, what prepares its inputs, a card.

Translators that are MarianMT or Pegasus there have Marian's tokenizer, which takes SentencePiece models as they are;
all others have a `tokenizer.json`, and pictures a `preprocessor_config.json`.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from torch import nn

from transduce.bundle import Bundle
from transduce.decoding import DecodingOptions
from transduce.errors import ConfigError
from transduce.interop import marian_tokenizer
from transduce.interop.huggingface_card import card
from transduce.interop.huggingface_export import export_huggingface, huggingface_kind
from transduce.interop.huggingface_vocabulary import HuggingFaceVocabulary
from transduce.interop.kinds.kind import Kind
from transduce.interop.numbering import Numbering, renumbered
from transduce.text.languages import Direction
from transduce.text.tokenizer import BOS, EOS, PAD

__all__ = ["LONGEST", "Counterpart"]

LONGEST = 256
"""Tokens that are written at most."""
READ_AT_ONCE = 512
"""Tokens of a text, where a network has no limit of its own."""


@dataclass(frozen=True)
class Counterpart:
    """What a model directory is there."""

    bundle: Bundle
    model: nn.Module
    """With their ids."""
    kind: Kind
    numbering: Numbering
    """Of pictures, nothing."""
    vocabulary: HuggingFaceVocabulary | None
    """None for Marian's tokenizer, and for pictures."""
    languages: Direction
    target: str | None
    """The language that is asked for, of a model that knows several."""

    @classmethod
    def of(cls, bundle: Bundle, languages: Direction, target: str | None) -> Counterpart:
        """What a model directory becomes; what has no counterpart is refused with the reason."""
        model = bundle.module()
        config = bundle.config
        if config.network == "vision":
            return cls(bundle, model, huggingface_kind(model)[0], Numbering((), {}), None, languages, target)
        if config.network == "transformer" and (kind := _marian(bundle, model, target)) is not None:
            size = max(tokenizer.size for tokenizer in (bundle.vocabularies().source, bundle.vocabularies().target))
            return cls(bundle, model, kind, Numbering.same(size), None, languages, target)
        if config.network == "recurrent":
            huggingface_kind(model)  # which says that there is none
        vocabulary = HuggingFaceVocabulary.of(bundle, model, target)
        theirs = renumbered(model, vocabulary.numbering)
        return cls(bundle, theirs, huggingface_kind(theirs)[0], vocabulary.numbering, vocabulary, languages, target)

    def write(self, output: Path) -> None:
        """Write the directory, aside and then renamed."""
        own = self.bundle.path / "README.md"
        text = own.read_text(encoding="utf-8") if own.is_file() else ""
        mask = self.vocabulary.roles.get("mask_token", "") if self.vocabulary else ""
        files = {
            **self._inputs(),
            **({"generation_config.json": _json(self.generation())} if self.writes else {}),
            "README.md": card(
                self.bundle.config, self.languages, text, marian=self.vocabulary is None, mask=mask
            ).encode(),
        }
        export_huggingface(self.model, output, self._settings(), files)

    @property
    def writes(self) -> bool:
        """Whether it writes texts."""
        return self.bundle.config.network in ("transformer", "decoder-only")

    def generation(self) -> dict[str, Any]:
        """How it is searched, and what it never writes."""
        ids, vocabularies = self.numbering.ids, self.bundle.vocabularies()
        never = {ids[index] for index in vocabularies.target.unwritten} - {ids[EOS]}
        found: dict[str, Any] = {"bos_token_id": ids[BOS], "eos_token_id": ids[EOS], "pad_token_id": ids[PAD]}
        if never:
            found["bad_words_ids"] = [[index] for index in sorted(never)]
        if self.bundle.config.network == "decoder-only":
            return found
        options = DecodingOptions().replace(**self.bundle.config.decoding)
        start = self.numbering.of(vocabularies.start(self.target))
        if len(start) > 1:
            raise ConfigError(
                f"it reads {len(start)} tokens before it writes, and transformers forces one.",
                remedy="Export it for CTranslate2 instead.",
            )
        return found | {
            "decoder_start_token_id": ids[BOS],
            **({"forced_bos_token_id": start[0]} if start else {}),
            "forced_eos_token_id": ids[EOS],
            "num_beams": options.beam,
            "length_penalty": options.alpha,
            "early_stopping": "never" if options.beam > 1 else False,
            "no_repeat_ngram_size": options.no_repeat_ngram,
            "max_length": LONGEST + 1 + len(start),  # with what is read before anything is written
        }

    def _inputs(self) -> dict[str, bytes]:
        """The files that say how texts or pictures become what the network reads."""
        config: Any = self.model.config
        if self.bundle.config.network == "vision":
            return {"preprocessor_config.json": _json(_pictures(config))}
        if self.vocabulary is None:
            return marian_tokenizer.files(self.bundle.vocabularies(), self.languages)
        known = self.bundle.vocabularies().source.frame
        coded = known is not None and (known.languages or known.after_source)
        languages = {"src_lang": self.languages.source, "tgt_lang": self.languages.target} if coded else {}
        longest = config.max_length if config.positions == "learned" else READ_AT_ONCE
        return self.vocabulary.files(longest, languages)

    def _settings(self) -> dict[str, Any]:
        """What config.json says besides the shape."""
        labels = self.bundle.config.labels
        found: dict[str, Any] = {}
        if labels:
            found["id2label"] = {str(number): name for number, name in enumerate(labels)}
            found["label2id"] = {name: number for number, name in enumerate(labels)}
        if self.vocabulary is not None:
            found["pad_token_id"] = self.numbering.ids[PAD]
        return found


def _marian(bundle: Bundle, model: nn.Module, target: str | None) -> Kind | None:
    """The kind of a translator that Marian's tokenizer is for; None if it is for no such model."""
    try:
        kind, _ = huggingface_kind(model)
    except ConfigError:
        return None
    fits = kind.model_type in ("marian", "pegasus") and marian_tokenizer.fits(bundle.vocabularies())
    return kind if fits else None


def _pictures(config: Any) -> Mapping[str, Any]:
    """Pictures as `transduce.data.images.pixels` makes them: numbers from -1 to 1."""
    return {
        "image_processor_type": "ViTImageProcessor",
        "do_resize": True,
        "size": {"height": config.height, "width": config.width},
        "do_rescale": True,
        "rescale_factor": 1 / 255,
        "do_normalize": True,
        "image_mean": [0.5] * config.channels,
        "image_std": [0.5] * config.channels,
    }


def _json(values: Any) -> bytes:
    return json.dumps(values, ensure_ascii=False, indent=2).encode() + b"\n"
