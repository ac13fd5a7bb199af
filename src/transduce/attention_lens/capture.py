"""One pass over what a model reads and writes, with the weights of every head written down.

Shapes: L layers, H heads, S source tokens, T target tokens, N patches and the class token, V vocabulary or labels.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from transduce.attention_lens.maps import Alternative, AttentionMaps, Guess, Step, Weights
from transduce.attention_lens.patches import PictureMaps
from transduce.attention_lens.words import Labels, labels_of
from transduce.data.images import pixels
from transduce.decoding.steps import evaluating
from transduce.errors import InputError
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderOnly
from transduce.model.transformer import AttentionRecord
from transduce.model.vision import VisionTransformer
from transduce.text import Vocabularies
from transduce.text.languages import Direction
from transduce.text.normalise import SPACE_MARK
from transduce.text.tokenizer import EOS, MASK, Tokenizer

__all__ = ["LONGEST", "AttentiveTranslator", "capture", "capture_picture", "capture_text", "check_length"]

LONGEST = 512
"""Tokens of either side, the end included: more would be tens of megabytes that nobody can look at."""
ALTERNATIVES = 5
MOST_LABELS = 10
NOTHING = Labels("", [], [])
Names = Callable[[Sequence[int]], list[str]]
"""What ids of tokens or numbers of labels are called."""


class AttentiveTranslator(Protocol):
    """A model that reads one text and writes another, and can say where it looked."""

    @property
    def bos_id(self) -> int:
        """The id that starts the decoder's input."""

    @property
    def max_target_length(self) -> int | None:
        """The longest text that the model has positions for; None where there is no limit."""

    def parameters(self) -> Iterator[nn.Parameter]:
        """The weights."""

    def with_attention(self, source_ids: Tensor, target_ids: Tensor) -> tuple[Tensor, AttentionRecord]:
        """Logits [B,T,V] and what every head looked at."""


def capture(
    model: AttentiveTranslator,
    vocabularies: Vocabularies,
    source: Sequence[int],
    target: Sequence[int],
    *,
    name: str = "",
    languages: Direction | None = None,
    start: Sequence[int] = (),
) -> AttentionMaps:
    """Attention of a model over source ids (without end of sentence) and target ids (which end with it).

    The target is read in one go, as in training: what is seen is what the model saw when it wrote it token by token.
    What the decoder reads before it writes, `start`, is shown as if it had been written.
    """
    target = [*start, *target]
    read = [*source, EOS]
    for side, ids in (("text", read), ("translation", target)):
        check_length(model, side, len(ids))
    device = next(model.parameters()).device
    with evaluating(model):
        source_ids = torch.tensor([read], device=device)
        target_ids = torch.tensor([[model.bos_id, *target[:-1]]], device=device)
        logits, record = model.with_attention(source_ids, target_ids)
        probabilities_TV = logits[0].float().softmax(-1).cpu()
    source_language, target_language = languages or Direction()
    encoder, decoder, cross = _weights(record, len(read), len(target))
    return AttentionMaps(
        model=name,
        source_language=source_language,
        target_language=target_language,
        source=labels_of(read, vocabularies.source),
        target=labels_of(target, vocabularies.target),
        encoder=encoder,
        decoder=decoder,
        cross=cross,
        steps=_steps(probabilities_TV, target, vocabularies.target),
    )


def capture_text(
    model: EncoderOnly | LanguageModel,
    tokenizer: Tokenizer,
    ids: Sequence[int],
    labels: Sequence[str] = (),
    *,
    name: str = "",
    language: str | None = None,
) -> AttentionMaps:
    """Attention of a model over the ids of one text, which it reads (the encoder alone) or writes (the decoder alone).

    Ids are as in training: those that an encoder reads end with the end of sentence; those of a language model are
    without the start. `labels` are the names of a classifier's labels or of a tagger's tags, one a word.
    """
    if isinstance(model, LanguageModel):
        return _written(model, tokenizer, ids, name, language)
    config = model.config
    _check(config.max_length if config.positions == "learned" else None, "text", len(ids))
    with evaluating(model):
        logits, record = model.with_attention(torch.tensor([ids], device=next(model.parameters()).device))
        probabilities_SV = logits[0].float().softmax(-1).cpu()
    encoder, decoder, cross = _weights(record, len(ids), 0)
    return AttentionMaps(
        model=name,
        source_language=language,
        target_language=None,
        source=labels_of(ids, tokenizer),
        target=NOTHING,
        encoder=encoder,
        decoder=decoder,
        cross=cross,
        steps=[],
        guesses=_guesses(model, tokenizer, ids, probabilities_SV, labels),
    )


def capture_picture(
    model: VisionTransformer,
    picture: NDArray[np.uint8],
    labels: Sequence[str] = (),
    *,
    name: str = "",
    title: str = "picture",
) -> PictureMaps:
    """Attention of a model over the patches of a picture, bytes [height, width, channels]."""
    config = model.config
    expected = [config.height, config.width, config.channels]
    if list(picture.shape) != expected:
        raise InputError(
            f"the picture has shape {list(picture.shape)}; the model reads {expected}.",
            remedy="Give a picture of the size that it was trained on, as [height, width, channels].",
        )
    with evaluating(model):
        logits, record = model.with_attention(pixels(picture[None]).to(next(model.parameters()).device))
        probabilities_1V = logits[0].float().softmax(-1).cpu()
    found = _best(probabilities_1V, _names(labels, config.labels), MOST_LABELS)
    tokens = config.grid[0] * config.grid[1] + 1
    return PictureMaps(
        model=name,
        title=title,
        picture=picture[:, :, :3] if config.channels > 2 else picture[:, :, 0],
        grid=config.grid,
        encoder=_stacked(record.encoder, config.heads, tokens, tokens),
        guesses=[Guess("label", None, best) for best in found],
    )


def check_length(model: AttentiveTranslator, side: str, tokens: int) -> None:
    """Refuse what is too long to be looked at, or for the model."""
    _check(model.max_target_length, side, tokens)


def _check(most: int | None, side: str, tokens: int) -> None:
    longest = min(LONGEST, most or LONGEST)
    if tokens > longest:
        raise InputError(
            f"the {side} has {tokens} tokens; the lens shows up to {longest}.",
            remedy="Give one sentence, or a part of it.",
        )


def _written(
    model: LanguageModel, tokenizer: Tokenizer, ids: Sequence[int], name: str, language: str | None
) -> AttentionMaps:
    """A text as a language model writes it, from the start."""
    most, rows = model.max_target_length, len(ids)
    _check(most, "text", rows)
    goes_on = ids[-1] != EOS and (most is None or rows < most)
    read = [model.bos_id, *ids] if goes_on else [model.bos_id, *ids[:-1]]
    with evaluating(model):
        logits, record = model.with_attention(torch.tensor([read], device=next(model.parameters()).device))
        probabilities_TV = logits[0].float().softmax(-1).cpu()
    seen = AttentionRecord(decoder=[weights[:, :, :rows, :rows] for weights in record.decoder])
    encoder, decoder, cross = _weights(seen, 0, rows)
    following = [Guess("next", None, best) for best in _best(probabilities_TV[rows:], tokenizer.pieces)]
    return AttentionMaps(
        model=name,
        source_language=None,
        target_language=language,
        source=NOTHING,
        target=labels_of(ids, tokenizer),
        encoder=encoder,
        decoder=decoder,
        cross=cross,
        steps=_steps(probabilities_TV[:rows], ids, tokenizer),
        guesses=following,
    )


def _weights(record: AttentionRecord, source: int, target: int) -> tuple[Weights, Weights, Weights]:
    """Encoder, decoder and cross maps of a record; those that the model does not have are without layers."""
    heads = next((layers[0].size(1) for layers in (record.cross, record.encoder, record.decoder) if layers), 0)
    return (
        _stacked(record.encoder, heads, source, source),
        _stacked(record.decoder, heads, target, target),
        _stacked(record.cross, heads, target, source),
    )


def _stacked(layers: list[Tensor], heads: int, rows: int, columns: int) -> Weights:
    """[L,H,rows,columns] of the one sentence; a stack may have no layers at all."""
    if not layers:
        return np.zeros((0, heads, rows, columns), dtype=np.float32)
    return torch.stack([weights[0] for weights in layers]).float().cpu().numpy()


def _steps(probabilities_TV: Tensor, target: Sequence[int], tokenizer: Tokenizer) -> list[Step]:
    alternatives = _best(probabilities_TV, tokenizer.pieces)
    return [
        Step(piece, float(probabilities_V[token]), best)
        for piece, token, probabilities_V, best in zip(
            tokenizer.pieces(target), target, probabilities_TV, alternatives, strict=True
        )
    ]


def _guesses(
    model: EncoderOnly, tokenizer: Tokenizer, ids: Sequence[int], probabilities_SV: Tensor, labels: Sequence[str]
) -> list[Guess]:
    """What the model's head says: of each masked token, of each token that begins a word, or of the text as a whole."""
    tokens, head = tokenizer.pieces(ids), model.config.head
    if head == "masked":
        masks = [place for place, token in enumerate(tokens) if token == MASK]
        allowed_SV = probabilities_SV.clone()
        allowed_SV[:, [*tokenizer.unwritten, EOS]] = 0  # what is no text cannot be hidden in one
        found = _best(allowed_SV[masks], tokenizer.pieces)
        return [Guess("mask", place, best) for place, best in zip(masks, found, strict=True)]
    names = _names(labels, model.config.output_size)
    if head == "sentence":
        return [Guess("label", None, best) for best in _best(probabilities_SV, names, MOST_LABELS)]
    begins = [place for place, token in enumerate(tokens) if token.startswith(SPACE_MARK)]
    found = _best(probabilities_SV[begins], names)
    return [Guess("tag", place, best) for place, best in zip(begins, found, strict=True)]


def _best(probabilities_TV: Tensor, names: Names, most: int = ALTERNATIVES) -> list[list[Alternative]]:
    """For each row the most probable, by name."""
    best = probabilities_TV.topk(min(most, probabilities_TV.size(-1)))
    return [
        [Alternative(name, value) for name, value in zip(names(places), values, strict=True)]
        for values, places in zip(best.values.tolist(), best.indices.tolist(), strict=True)
    ]


def _names(labels: Sequence[str], count: int) -> Names:
    """What labels are called; they are numbers where no names are given."""
    if labels and len(labels) != count:
        raise InputError(
            f"the model tells {count} labels apart, and {len(labels)} have names.", remedy="Name all of them, or none."
        )
    return lambda places: [labels[place] if labels else str(place) for place in places]
