"""What a hypothesis is worth: the best it can still reach, and the score of a target that is given."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.options import DecodingOptions
from transduce.decoding.penalty import length_penalty
from transduce.decoding.steps import State, Stepper, evaluating
from transduce.errors import InputError

__all__ = ["score", "upper_bound"]


def upper_bound(log_probability: Tensor, shortest: Tensor, longest: Tensor, options: DecodingOptions) -> Tensor:
    """The best score that an unfinished hypothesis can still reach, ending at `shortest` … `longest` tokens.

    Its log-probability can only fall, and the penalty is monotone in length: so the best is at one of the two ends.
    """
    soon = log_probability / length_penalty(shortest, options)
    late = log_probability / length_penalty(longest, options)
    return torch.maximum(soon, late)


def score(
    stepper: Stepper[State],
    source_ids: Tensor,
    targets: Sequence[Sequence[int]],
    options: DecodingOptions | None = None,
) -> list[Hypothesis]:
    """Score given targets, one for each source [B,S]: ids without the starting one, usually ending in `eos_id`.

    A hypothesis that `decode` found gets the score that it was found with.
    """
    options = options or DecodingOptions()
    if len(targets) != source_ids.size(0):
        raise InputError(
            f"{source_ids.size(0)} sources but {len(targets)} targets.",
            remedy="Give one target for each source.",
        )
    check_tokens(stepper, targets, "target")
    for index, target in enumerate(targets):
        if not target:
            raise InputError(f"target {index} is empty.", remedy="Give at least the end of sentence.")
    if not targets:
        return []
    lengths = torch.tensor([len(target) for target in targets])
    width, start = int(lengths.max()), [stepper.bos_id, *options.start]
    padded = [[*target, *[stepper.pad_id] * (width - len(target))] for target in targets]
    with evaluating(stepper):
        tokens_BT = torch.tensor(padded, device=source_ids.device)
        start_BR = torch.tensor([start], device=source_ids.device).expand(len(targets), -1)
        inputs_BT = torch.cat((start_BR, tokens_BT[:, :-1]), dim=1)
        logits_BTV = stepper.step(stepper.prefill(source_ids, inputs_BT.size(1)), inputs_BT)[:, len(start) - 1 :]
        scores_BT = logits_BTV.float().log_softmax(-1).gather(-1, tokens_BT.unsqueeze(-1)).squeeze(-1)
    token_scores = [row[:length] for row, length in zip(scores_BT.tolist(), lengths.tolist(), strict=True)]
    penalties = length_penalty(lengths, options).tolist()
    return [
        Hypothesis(list(target), sum(scores) / penalty, sum(scores), scores)
        for target, scores, penalty in zip(targets, token_scores, penalties, strict=True)
    ]


def check_tokens(stepper: Stepper[State], sequences: Sequence[Sequence[int]], what: str) -> None:
    """Refuse ids that the model cannot write."""
    for index, sequence in enumerate(sequences):
        for token in sequence:
            if not 0 <= token < stepper.output_size:
                raise InputError(
                    f"{what} {index} holds id {token}, outside the vocabulary of {stepper.output_size} ids.",
                    remedy=f"Ids run from 0 to {stepper.output_size - 1}.",
                )
