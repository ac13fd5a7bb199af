"""Exported models that do not translate, as `transformers` runs them, compared with ours: one function a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from transduce.classifier import Classifier, Filler
from transduce.data.images import pixels
from transduce.errors import InputError
from transduce.generator import Generator
from transduce.interop.huggingface_card import other_meanings
from transduce.interop.huggingface_directory import Counterpart
from transduce.interop.huggingface_translation import loaded
from transduce.interop.parity import EXAMPLES, MASKED, Difference, Parity
from transduce.text.masked import WRITTEN_MASK
from transduce.text.tokenizer import BOS, EOS, MASK

if TYPE_CHECKING:
    import numpy as np

__all__ = ["kin_parity"]

CONTINUED = 16
"""Tokens that a language model adds to each text."""
SAME_PIXELS = 1e-5
"""Pixels are numbers from -1 to 1, which two libraries may round differently."""


@dataclass(frozen=True)
class Compared:
    """What became of one text, or picture."""

    what: str
    same_input: bool
    """Whether theirs is given the ids, or pixels, that ours is given."""
    ours: str
    exported: str
    logits: float
    """How far theirs are from ours at most."""


Compare = Callable[[Counterpart, Path, Sequence[Any]], Iterator[Compared]]


def kin_parity(counterpart: Counterpart, path: Path, examples: Sequence[str] | Sequence[np.ndarray]) -> Parity:
    """Give texts, or pictures, to both and compare."""
    task = counterpart.bundle.config.task
    name, compare = COMPARE[task]
    with torch.inference_mode():
        found = list(compare(counterpart, path, examples))
    if not found:
        raise InputError("there is nothing to compare on.", remedy="Give --verify-text FILE.")
    differences = [Difference(each.what, each.ours, each.exported) for each in found if each.ours != each.exported]
    return Parity(
        sentences=len(found),
        identical=len(found) - len(differences),
        largest_logit_difference=max(each.logits for each in found),
        identical_ids=sum(each.same_input for each in found),
        compared=name,
        other_meanings=other_meanings(task),
        differences=differences[:EXAMPLES],
    )


def _continuations(counterpart: Counterpart, path: Path, texts: Sequence[str]) -> Iterator[Compared]:
    """What a language model adds to each text, always the most probable token."""
    ours, numbering = Generator(counterpart.bundle), counterpart.numbering
    tokenizer, theirs = loaded(path, "AutoTokenizer", "AutoModelForCausalLM")
    longest = (ours.model.max_target_length or 10**6) - CONTINUED - 1
    for text in texts:
        ids = ours.vocabulary.encode_document(text)[:longest]
        prompt = ours.vocabulary.decode(ids)
        ids = ours.vocabulary.encode_document(prompt)
        if not ids:
            continue
        read = tokenizer(prompt, return_tensors="pt")
        written = theirs.generate(**read, max_new_tokens=CONTINUED, do_sample=False, num_beams=1)[0]
        added = numbering.ours(written[read.input_ids.shape[1] :].tolist())
        given = torch.tensor([[BOS, *ids]])
        logits = numbering.columns(theirs(torch.tensor([numbering.of([BOS, *ids])])).logits)
        yield Compared(
            what=text,
            same_input=read.input_ids[0].tolist() == numbering.of([BOS, *ids]),
            ours=ours.generate(prompt, CONTINUED, beam=1).text,
            exported=ours.vocabulary.decode([*ids, *added])[len(prompt) :],
            logits=_apart(ours.model(given), logits),
        )


def _words(counterpart: Counterpart, path: Path, texts: Sequence[str]) -> Iterator[Compared]:
    """What a model guesses for a word in the middle of each text."""
    ours, numbering = Filler(counterpart.bundle), counterpart.numbering
    tokenizer, theirs = loaded(path, "AutoTokenizer", "AutoModelForMaskedLM")
    vocabulary = ours.vocabulary
    never = [*vocabulary.unwritten, EOS]
    for text in texts:
        masked = text if WRITTEN_MASK in text else _masked(text)
        ids = [*vocabulary.before, *ours.encode(masked), EOS]
        if _too_long(ours.model, ids):
            continue
        places = [place for place, index in enumerate(ids) if index == vocabulary.tag(MASK)]
        found = tokenizer(masked.replace(WRITTEN_MASK, tokenizer.mask_token)).input_ids
        logits = numbering.columns(theirs(torch.tensor([numbering.source(ids)])).logits)
        allowed = logits[0].clone()
        allowed[:, never] = -torch.inf
        guessed = vocabulary.pieces(allowed[places].argmax(-1).tolist())
        yield Compared(
            what=masked,
            same_input=found == numbering.source(ids),
            ours=" | ".join(guesses[0].label.strip() for guesses in ours.fill(masked, best=1)),
            exported=" | ".join(piece.replace("▁", " ").strip() for piece in guessed),
            logits=_apart(ours.model(torch.tensor([ids])), logits),
        )


def _masked(text: str) -> str:
    words = text.split()
    return " ".join([*words[: len(words) // 2], WRITTEN_MASK, *words[len(words) // 2 + 1 :]])


def _classes(counterpart: Counterpart, path: Path, texts: Sequence[str]) -> Iterator[Compared]:
    """What texts are named."""
    ours, numbering = Classifier(counterpart.bundle), counterpart.numbering
    tokenizer, theirs = loaded(path, "AutoTokenizer", "AutoModelForSequenceClassification")
    vocabulary = counterpart.bundle.vocabularies().source
    for text in texts:
        ids = [*vocabulary.before, *vocabulary.encode(text), EOS]
        if _too_long(ours.model, ids):
            continue
        batch = tokenizer(text, return_tensors="pt")
        logits = theirs(**batch).logits
        yield Compared(
            what=text,
            same_input=batch.input_ids[0].tolist() == numbering.source(ids),
            ours=ours.classify([text], best=1)[0][0].label,
            exported=theirs.config.id2label[int(logits[0].argmax())],
            logits=_apart(ours.model(torch.tensor([ids]))[0], logits),
        )


def _tags(counterpart: Counterpart, path: Path, texts: Sequence[str]) -> Iterator[Compared]:
    """What the words of texts are named, each by its first piece."""
    ours, numbering = Classifier(counterpart.bundle), counterpart.numbering
    tokenizer, theirs = loaded(path, "AutoTokenizer", "AutoModelForTokenClassification")
    vocabulary = counterpart.bundle.vocabularies().source
    for text in texts:
        words = text.split()
        pieces = [index for word in vocabulary.encode_batch(words) for index in word] if words else []
        ids = [*vocabulary.before, *pieces, EOS]
        if not pieces or _too_long(ours.model, ids):
            continue
        batch = tokenizer(words, is_split_into_words=True, return_tensors="pt")
        logits = theirs(**batch).logits[0]
        first = {word: place for place, word in reversed([*enumerate(batch.word_ids())]) if word is not None}
        tags = [theirs.config.id2label[int(logits[first[word]].argmax())] for word in sorted(first)]
        same = batch.input_ids[0].tolist() == numbering.source(ids)
        mine = ours.model(torch.tensor([ids]))[0]
        yield Compared(
            what=text,
            same_input=same,
            ours=" ".join(word.tag for word in ours.tag([text])[0]),
            exported=" ".join(tags),
            logits=_apart(mine, logits) if same else torch.inf,
        )


def _pictures(counterpart: Counterpart, path: Path, images: Sequence[np.ndarray]) -> Iterator[Compared]:
    """What pictures are named."""
    ours = Classifier(counterpart.bundle)
    processor, theirs = loaded(path, "AutoImageProcessor", "AutoModelForImageClassification")
    for number, image in enumerate(images):
        read, given = processor(image, return_tensors="pt").pixel_values, pixels(image[None])
        logits = theirs(read).logits
        yield Compared(
            what=f"picture {number + 1}",
            same_input=_apart(given, read) < SAME_PIXELS,
            ours=ours.classify_pictures(image[None], best=1)[0][0].label,
            exported=theirs.config.id2label[int(logits[0].argmax())],
            logits=_apart(ours.model(given)[0], logits),
        )


COMPARE: dict[str, tuple[str, Compare]] = {
    "language-model": ("continuations", _continuations),
    "masked-language-model": ("filled words", _words),
    "classification": ("classes", _classes),
    "tagging": ("tags", _tags),
    "image-classification": ("classes of pictures", _pictures),
}


def _too_long(model: Any, ids: Sequence[int]) -> bool:
    return bool(model.config.positions == "learned" and len(ids) > model.config.max_length)


def _apart(ours: Tensor, theirs: Tensor) -> float:
    """The largest difference of two tensors, wherever theirs has a number."""
    if ours.shape != theirs.shape:
        return float("inf")
    return float((ours - theirs)[theirs > MASKED].abs().max())
