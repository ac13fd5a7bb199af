"""One pass over a sentence and its translation, with the weights of every head written down.

Shapes: L layers, H heads, S source tokens, T target tokens, V vocabulary.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from transduce.attention_lens.maps import Alternative, AttentionMaps, Step
from transduce.attention_lens.words import labels_of
from transduce.decoding.steps import evaluating
from transduce.errors import InputError
from transduce.model import Transformer
from transduce.text import Vocabularies
from transduce.text.languages import Direction
from transduce.text.tokenizer import EOS, Tokenizer

__all__ = ["LONGEST", "capture", "check_length"]

LONGEST = 512
"""Tokens of either side, the end included: more would be tens of megabytes that nobody can look at."""
ALTERNATIVES = 5


def capture(
    model: Transformer,
    vocabularies: Vocabularies,
    source: Sequence[int],
    target: Sequence[int],
    *,
    name: str = "",
    languages: Direction | None = None,
) -> AttentionMaps:
    """Attention of a model over source ids (without end of sentence) and target ids (which end with it).

    The target is read in one go, as in training: what is seen is what the model saw when it wrote it token by token.
    """
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
    heads, rows, columns = model.config.heads, len(target), len(read)
    return AttentionMaps(
        model=name,
        source_language=source_language,
        target_language=target_language,
        source=labels_of(read, vocabularies.source),
        target=labels_of(target, vocabularies.target),
        encoder=_stacked(record.encoder, heads, columns, columns),
        decoder=_stacked(record.decoder, heads, rows, rows),
        cross=_stacked(record.cross, heads, rows, columns),
        steps=_steps(probabilities_TV, target, vocabularies.target),
    )


def check_length(model: Transformer, side: str, tokens: int) -> None:
    """Refuse what is too long to be looked at, or for the model."""
    longest = min(LONGEST, model.max_target_length or LONGEST)
    if tokens > longest:
        raise InputError(
            f"the {side} has {tokens} tokens; the lens shows up to {longest}.",
            remedy="Give one sentence, or a part of it.",
        )


def _stacked(layers: list[Tensor], heads: int, rows: int, columns: int) -> np.ndarray:
    """[L,H,rows,columns] of the one sentence; a stack may have no layers at all."""
    if not layers:
        return np.zeros((0, heads, rows, columns), dtype=np.float32)
    return torch.stack([weights[0] for weights in layers]).float().cpu().numpy()


def _steps(probabilities_TV: Tensor, target: Sequence[int], tokenizer: Tokenizer) -> list[Step]:
    best = probabilities_TV.topk(min(ALTERNATIVES, probabilities_TV.size(-1)))
    steps = []
    for row, token, values, ids in zip(
        probabilities_TV, target, best.values.tolist(), best.indices.tolist(), strict=True
    ):
        alternatives = [Alternative(piece, value) for piece, value in zip(tokenizer.pieces(ids), values, strict=True)]
        steps.append(Step(tokenizer.pieces([token])[0], float(row[token]), alternatives))
    return steps
