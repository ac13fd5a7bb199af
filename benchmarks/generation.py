"""What does the next token cost a language model, and does that grow with the text? With the cache and without.

Run it with: python benchmarks/generation.py [--layers 4] [--width 128] [--longest 2048]

An untrained model is as fast as a trained one. With the cache a token costs one row in every projection, whatever came
before; only attention looks back at all of it. Without, everything is computed again. That both write the same is
checked on the way: the tokens written with the cache are what one pass over the whole text says at each place.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import nn

from transduce.decoding import DecodingOptions, decode
from transduce.decoding.steps import evaluating
from transduce.model import TransformerConfig
from transduce.model.decoder_only import LanguageModel

STEPS = 20
"""Tokens that are written at each length to time one."""


class ProjectionClock:
    """Seconds of processor time spent in a model's matrix products with weights."""

    def __init__(self, model: nn.Module) -> None:
        self.seconds, self._start = 0.0, 0.0
        for part in model.modules():
            if isinstance(part, nn.Linear):
                part.register_forward_pre_hook(self._begin)
                part.register_forward_hook(self._end)

    def _begin(self, *_: Any) -> None:
        self._start = time.thread_time()

    def _end(self, *_: Any) -> None:
        self.seconds += time.thread_time() - self._start


def main() -> None:
    """Print a line for each length."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--layers", type=int, default=4)
    arguments.add_argument("--width", type=int, default=128)
    arguments.add_argument("--longest", type=int, default=2048)
    given = arguments.parse_args()
    torch.manual_seed(1)
    torch.set_num_threads(1)  # a single row is too little to share
    config = TransformerConfig.tiny(
        325, decoder_layers=given.layers, d_model=given.width, d_ff=4 * given.width, norm_position="pre",
        activation="gelu", positions="rotary",
    )  # fmt: skip
    model = LanguageModel(config).eval()
    ids = torch.randint(4, 325, (1, given.longest))
    clock = ProjectionClock(model)
    print(f"{given.layers} layers of width {given.width}, one thread; milliseconds of processor time a token")
    print("length   cached: projections   the rest   without cache   ratio")
    lengths = [length for length in (32, 64, 128, 256, 512, 1024, 2048, 4096) if length <= given.longest]
    for length in lengths:
        with evaluating(model):
            cached, projections = _timed(clock, _cached(model, ids, length), STEPS)
            plain, _ = _timed(clock, lambda end=length: model(ids[:, :end]), 3)
        rest = cached - projections
        print(f"{length:6}   {projections:19.3f}   {rest:8.3f}   {plain:13.2f}   {plain / cached:5.1f}", flush=True)
    _check_same(model, given.longest)


def _cached(model: LanguageModel, ids: torch.Tensor, length: int) -> Callable[[], object]:
    """One more token after a text of about this length has been read."""
    state = model.prefill(ids, capacity=length + STEPS)
    model.step(state, ids[:, : length - STEPS])
    return lambda: model.step(state, ids[:, :1])


def _timed(clock: ProjectionClock, work: Callable[[], object], times: int) -> tuple[float, float]:
    """Milliseconds of a call, the median, and of those in projections, the mean."""
    work()
    before, spent = clock.seconds, []
    for _ in range(times):
        start = time.thread_time()
        work()
        spent.append(time.thread_time() - start)
    return 1000 * sorted(spent)[len(spent) // 2], 1000 * (clock.seconds - before) / times


def _check_same(model: LanguageModel, longest: int) -> None:
    """Write greedily with the cache, then ask one pass over the whole text what it would have written at each place."""
    options = DecodingOptions(beam=1, max_length_ratio=0, max_length_extra=longest, suppress=(0, 1, 2, 3))
    written = decode(model, torch.tensor([[model.bos_id]]), options)[0][0].tokens[:-1]
    with evaluating(model):
        logits = model(torch.tensor([[model.bos_id, *written[:-1]]]))[0, :, 4:]  # the first four are no text
    same = sum(int(best) + 4 == token for best, token in zip(logits.argmax(-1), written, strict=True))
    print(f"written with the cache and without: {same:,} of {len(written):,} tokens are the same")


if __name__ == "__main__":
    main()
