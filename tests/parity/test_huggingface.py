"""Models of `transformers`, read without it, give the logits and the translations that they give there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch

from transduce.decoding import DecodingOptions, decode
from transduce.interop import load_huggingface

WRITERS = ["marian-scaled-swish-bias", "marian-two-vocabularies", "bart-scaled-bias", "t5", "t5-gated-untied"]
LONGEST = 30
"""Tokens; what has not ended by then ends otherwise there: for nothing, and not at the price of an end."""


def test_logits_are_theirs(case: Any, tmp_path: Path) -> None:
    model = load_huggingface(case.saved(tmp_path))
    with torch.inference_mode():
        found = model(*case.inputs)
    assert float(case.logits.std()) > 0.1, "logits that are all alike would prove nothing"
    torch.testing.assert_close(found[case.real], case.logits[case.real], rtol=0, atol=1e-4)


@pytest.mark.parametrize("name", WRITERS)
def test_translations_are_theirs(name: str, case_named: Callable[[str], Any], tmp_path: Path) -> None:
    case = case_named(name)
    case.taught.save_pretrained(tmp_path)
    model, source = load_huggingface(tmp_path), case.lesson(24, seed=1000)[0]
    pad, eos = case.taught.config.pad_token_id, case.taught.config.eos_token_id
    options = DecodingOptions(length_penalty="power", alpha=0.7, max_length_ratio=0, max_length_extra=LONGEST)
    for beam in (1, 4):
        written = [found[0].tokens for found in decode(model, source, options.replace(beam=beam))]
        expected = case.taught.generate(
            input_ids=source, attention_mask=(source != pad).long(), num_beams=beam, do_sample=False,
            length_penalty=0.7, early_stopping="never" if beam > 1 else None, max_new_tokens=LONGEST,
        )[:, 1:].tolist()  # fmt: skip
        ended = [(row[: row.index(eos) + 1], ours) for row, ours in zip(expected, written, strict=True) if eos in row]
        assert len(ended) > 20, "most should come to an end by themselves"
        assert [row for row, _ in ended] == [ours for _, ours in ended]
        assert len({tuple(ours) for _, ours in ended}) > 3, "a model that always writes the same proves nothing"


@pytest.mark.parametrize("name", ["marian-scaled-swish-bias", "bart", "mbart", "m2m100", "t5-gated", "pegasus"])
def test_steps_with_a_cache_give_the_logits_of_one_pass(
    name: str, case_named: Callable[[str], Any], tmp_path: Path
) -> None:
    case = case_named(name)
    model: Any = load_huggingface(case.saved(tmp_path))
    source, target = case.inputs
    with torch.inference_mode():
        state = model.prefill(source, capacity=target.size(1))
        steps = [model.step(state, target[:, place : place + 1]) for place in range(target.size(1))]
        torch.testing.assert_close(torch.cat(steps, dim=1), case.logits, rtol=0, atol=1e-4)
