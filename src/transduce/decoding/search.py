"""Search for the best translations: greedy, beam and sampling in one loop, over any model that is a stepper.

Shapes: B sentences still searched, K beams, V vocabulary, P longest prefix.
"""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from transduce.decoding.beams import Beams
from transduce.decoding.choice import choose_best, choose_drawn, random_numbers
from transduce.decoding.filters import (
    FORBIDDEN,
    forbid,
    forbid_repeated_ngrams,
    keep_balanced,
    keep_only,
    penalise_repetition,
)
from transduce.decoding.hypothesis import Hypothesis
from transduce.decoding.options import DecodingOptions
from transduce.decoding.scoring import check_tokens
from transduce.decoding.steps import State, Stepper, evaluating
from transduce.errors import InputError, ModelError

__all__ = ["decode"]

NO_TOKEN = -1
UNLIKELY = -1e9
"""The least that a token which may be written can be worth."""


def decode(
    stepper: Stepper[State],
    source_ids: Tensor,
    options: DecodingOptions | None = None,
    watch: Callable[[Tensor], None] | None = None,
) -> list[list[Hypothesis]]:
    """Translate a batch of source ids [B,S]: for each sentence its hypotheses, best first.

    Search ends for a sentence as soon as no live hypothesis can still come among its best, and not before; the
    sentence then leaves the batch. What is found does not depend on what else is in the batch. `watch` is shown
    after each step what is written so far of those that go on, [B,K,T].
    """
    options = options or DecodingOptions()
    _check_batch(source_ids)
    if len(source_ids) == 0:
        return []
    check_tokens(stepper, [options.start], "start")
    limits = _limits(stepper, source_ids, options)
    prefixes = _prefixes(stepper, options, limits)
    check_tokens(stepper, [options.suppress], "suppress")
    _check_brackets(stepper, options, limits, prefixes)

    with evaluating(stepper):
        beams = Beams(torch.tensor(limits, device=source_ids.device), options)
        prefix_BP = _padded(prefixes, beams.limits_B)
        numbers_BNL = None
        if options.sampling:
            numbers_BNL = random_numbers(source_ids, stepper.pad_id, limits, options)
        state = stepper.prefill(source_ids, capacity=len(options.start) + max(limits))
        logits = _start(stepper, state, beams, prefixes)
        while True:
            log_probs_BKV = _log_probabilities(logits, beams)
            allowed_BKV = _allowed(log_probs_BKV, beams, prefix_BP, stepper.eos_id)
            if numbers_BNL is not None:
                numbers_BN = numbers_BNL[beams.sentences_B, :, beams.length]
                chosen = choose_drawn(log_probs_BKV, allowed_BKV, beams.totals_BK, stepper.eos_id, numbers_BN, options)
            else:
                chosen = choose_best(log_probs_BKV, allowed_BKV, beams.totals_BK, stepper.eos_id, beams.width)
            rows_BK = beams.advance(*chosen)
            if len(rows_BK) == 0:
                return beams.results
            if watch is not None:
                watch(beams.written_BKT)
            stepper.reorder(state, rows_BK)
            logits = stepper.step(state, beams.written_BKT[..., -1].reshape(-1, 1))


def _start(stepper: Stepper[State], state: State, beams: Beams, prefixes: list[list[int]]) -> Tensor:
    """Read at once what all prefixes have in length; returns the logits [B,1,V] of what comes next."""
    shared = min(len(prefix) for prefix in prefixes)
    read = [stepper.bos_id, *beams.options.start]
    tokens_BT = torch.tensor([[*read, *prefix[:shared]] for prefix in prefixes], device=beams.limits_B.device)
    logits_BTV = stepper.step(state, tokens_BT)
    if shared:
        written = tokens_BT[:, len(read) :]
        scores = logits_BTV[:, len(read) - 1 : -1].float().log_softmax(-1).gather(-1, written.unsqueeze(-1)).squeeze(-1)
        beams.start_with(written, scores)
    return logits_BTV[:, -1:]


def _log_probabilities(logits: Tensor, beams: Beams) -> Tensor:
    log_probs_BKV = logits.float().log_softmax(-1).view(len(beams.sentences_B), -1, logits.size(-1))
    if bool(log_probs_BKV[..., 0].isnan().any()):  # one NaN makes the whole distribution NaN
        raise ModelError(
            "the model's output is not a number (NaN).",
            remedy="Its training diverged or its weights are damaged; use an earlier checkpoint.",
        )
    return log_probs_BKV


def _allowed(log_probs_BKV: Tensor, beams: Beams, prefix_BP: Tensor, eos_id: int) -> Tensor:
    """Log-probabilities with −∞ for what may not be written now."""
    options, length = beams.options, beams.length
    guarded = options.no_repeat_ngram or options.repetition_penalty != 1 or eos_id in options.suppress
    guarded = guarded or options.brackets is not None
    if not guarded and max(prefix_BP.size(1), options.min_length) <= length < int(beams.limits_B.min()) - 1:
        if options.suppress:  # in place: none of these is chosen, so nobody will ask for its probability
            suppressed = torch.tensor(options.suppress, device=log_probs_BKV.device)
            log_probs_BKV.index_fill_(-1, suppressed, FORBIDDEN)
        return log_probs_BKV  # the usual case: all may end, none must

    allowed = log_probs_BKV
    if options.brackets is not None:
        log_probs_BKV = log_probs_BKV.clamp(min=UNLIKELY)  # even what it holds for impossible may be all that fits
        brackets = options.brackets.of(beams.sentences_B.tolist())
        allowed = keep_balanced(log_probs_BKV, beams.written_BKT, brackets, beams.limits_B - length, eos_id)
    if options.suppress:
        allowed = forbid(allowed, options.suppress)
    if options.repetition_penalty != 1 and length:
        allowed = penalise_repetition(allowed, beams.written_BKT, options.repetition_penalty)
    if options.no_repeat_ngram:
        allowed = forbid_repeated_ngrams(allowed, beams.written_BKT, options.no_repeat_ngram)
    if length < options.min_length:
        allowed = forbid(allowed, [eos_id])

    # A hypothesis that has reached its limit, or that has no legal way on, must end.
    must_end_BK = (beams.limits_B == length + 1).unsqueeze(1) | (allowed == FORBIDDEN).all(-1)
    end = torch.tensor([eos_id], device=allowed.device)
    allowed = torch.where(must_end_BK.unsqueeze(-1), keep_only(log_probs_BKV, end), allowed)
    if length < prefix_BP.size(1):
        forced_B = prefix_BP[beams.sentences_B, length]
        forced = keep_only(log_probs_BKV, forced_B.clamp(min=0)[:, None, None])
        allowed = torch.where((forced_B != NO_TOKEN)[:, None, None], forced, allowed)
    return allowed


def _check_batch(source_ids: Tensor) -> None:
    if not isinstance(source_ids, Tensor):
        kind = type(source_ids).__name__
        raise InputError(f"source ids are a {kind}.", remedy="Give a tensor: torch.tensor(source_ids).")
    if source_ids.dim() != 2:
        raise InputError(
            f"source ids have shape {list(source_ids.shape)}.",
            remedy="Give a batch [sentences, length]; for one sentence, ids.unsqueeze(0).",
        )


def _limits(stepper: Stepper[State], source_ids: Tensor, options: DecodingOptions) -> list[int]:
    """The longest output of each sentence, end of sentence included."""
    limits = []
    places = stepper.max_target_length and stepper.max_target_length - len(options.start)
    for index, length in enumerate((source_ids != stepper.pad_id).sum(1).tolist()):
        if length == 0:
            raise InputError(f"sentence {index} of the batch is empty.", remedy="Leave empty sentences out.")
        limit = options.max_length(length)
        if limit < 1:
            raise InputError(
                f"sentence {index} has {length} tokens, for which max_length_ratio={options.max_length_ratio} and "
                f"max_length_extra={options.max_length_extra} leave none to write.",
                remedy="Raise one of them.",
            )
        limits.append(min(limit, places or limit))
    return limits


def _prefixes(stepper: Stepper[State], options: DecodingOptions, limits: list[int]) -> list[list[int]]:
    prefixes = options.prefixes(len(limits))
    check_tokens(stepper, prefixes, "prefix")
    for index, (prefix, limit) in enumerate(zip(prefixes, limits, strict=True)):
        if len(prefix) >= limit:
            raise InputError(
                f"the prefix of sentence {index} has {len(prefix)} tokens, but at most {limit} may be written, the "
                f"end of sentence included.",
                remedy="Shorten the prefix or raise max_length_extra.",
            )
        if stepper.eos_id in prefix:
            raise InputError(
                f"the prefix of sentence {index} holds the end of sentence, id {stepper.eos_id}.",
                remedy="Leave it out: nothing can follow it.",
            )
    return prefixes


def _check_brackets(
    stepper: Stepper[State], options: DecodingOptions, limits: list[int], prefixes: list[list[int]]
) -> None:
    """Refuse what no tree can be written with."""
    brackets = options.brackets
    if brackets is None:
        return
    check_tokens(stepper, [sorted(brackets.ids)], "brackets")
    if stepper.eos_id in brackets.ids:
        raise InputError(f"brackets hold the end of sentence, id {stepper.eos_id}.", remedy="Leave it out.")
    brackets.check_count(len(limits))
    for index, (words, limit, prefix) in enumerate(zip(brackets.words, limits, prefixes, strict=True)):
        if brackets.ids & set(prefix):
            raise InputError(
                f"the prefix of sentence {index} holds a part of the tree.", remedy="Leave the tree to the search."
            )
        needed = len(prefix) + brackets.least_tokens(words)
        if needed > limit:
            raise InputError(
                f"the tree of sentence {index}, of {len(words)} words, has {needed} tokens or more, but at most "
                f"{limit} may be written.",
                remedy="Raise max_length_extra.",
            )


def _padded(prefixes: list[list[int]], like: Tensor) -> Tensor:
    """[B,P], NO_TOKEN after each prefix's end."""
    longest = max(len(prefix) for prefix in prefixes)
    rows = [[*prefix, *[NO_TOKEN] * (longest - len(prefix))] for prefix in prefixes]
    return torch.tensor(rows, dtype=torch.long, device=like.device).view(len(prefixes), longest)
