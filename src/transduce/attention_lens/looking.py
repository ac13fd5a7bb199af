"""From a model's directory and a text or a picture to where the model looks, whatever its task."""

from __future__ import annotations

from typing import cast

import numpy as np
from numpy.typing import NDArray

from transduce.attention_lens.capture import capture_picture, capture_text
from transduce.attention_lens.maps import AttentionMaps
from transduce.attention_lens.patches import PictureMaps
from transduce.bundle import Bundle, TaskName
from transduce.errors import InputError
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderOnly
from transduce.model.vision import VisionTransformer
from transduce.text import Tokenizer
from transduce.text.masked import encode_masked
from transduce.text.tokenizer import EOS

__all__ = ["look_at_picture", "look_at_text"]


def look_at_text(bundle: Bundle, text: str) -> AttentionMaps:
    """Where a model of one text looks: it fills masks, names or tags the text, or writes it.

    >>> maps = look_at_text(Bundle.open(Path("my-bert")), "My [MASK] works in a hospital.")
    >>> maps.guesses[0].alternatives  # what it would fill in
    """
    bundle.require("masked-language-model", "classification", "tagging", "language-model")
    config, tokenizer = bundle.config, bundle.vocabularies().source
    ids = _ids(config.task, tokenizer, text)
    if not {*ids} - {EOS, *tokenizer.before}:
        raise InputError("there is no text to look at.", remedy="Give a sentence.")
    model = cast("EncoderOnly | LanguageModel", bundle.module())
    name, language = bundle.path.resolve().name, config.source_language
    return capture_text(model, tokenizer, ids, config.labels, name=name, language=language)


def look_at_picture(bundle: Bundle, picture: NDArray[np.uint8], title: str = "picture") -> PictureMaps:
    """Where a model looks in a picture [height, width, channels] that it names."""
    bundle.require("image-classification")
    model = cast(VisionTransformer, bundle.module())
    return capture_picture(model, picture, bundle.config.labels, name=bundle.path.resolve().name, title=title)


def _ids(task: TaskName, tokenizer: Tokenizer, text: str) -> list[int]:
    """What a model of this task reads: as it was in training."""
    if task == "language-model":
        return tokenizer.encode_document(text)
    if task == "tagging":  # each word by itself, because each has a tag
        ids = [token for word in tokenizer.encode_batch(text.split()) for token in word]
    elif task == "masked-language-model":
        ids = encode_masked(tokenizer, text)
    else:
        ids = tokenizer.encode(text)
    return [*tokenizer.before, *ids, EOS]
