"""How fast the machine at hand trains a recipe: a few real steps on made-up data; no file is read or written."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import chain, count, islice
from pathlib import Path
from typing import Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from transduce.data.batches import BatchPlan, Indices
from transduce.data.shards import Ids, Pairs, Span
from transduce.model.encoder_only import EncoderConfig
from transduce.model.family import Config, make_network
from transduce.model.vision import VisionConfig
from transduce.model.workers import TOKENS_EACH, Workers
from transduce.text.tokenizer import UNKNOWN
from transduce.training.allocator import freed_memory_kept
from transduce.training.events import Stepped
from transduce.training.loop import Trainer
from transduce.training.recipe import Budget, Recipe
from transduce.training.task import Task
from transduce.training.tasks.prediction import IGNORED, Labelled, PredictionTask
from transduce.training.tasks.translation import DevSet, TranslationTask

__all__ = ["Speed", "made_up_task", "measure_speed"]

WARMUP = 2
"""Steps that do not count: memory is still being asked for."""
LEAST = 3
"""Steps that are measured, if they take no more than PATIENCE times the time; else one, however long it takes."""
PATIENCE = 3.0
LONGEST = 250
"""Tokens that no made-up text is longer than."""
SPREAD = 0.6
"""Of the logarithm of lengths."""
BATCHES = 200
"""In an epoch of made-up data."""
LONG_ENOUGH = 10**9
"""Steps, so that no budget ends the measurement."""


@dataclass(frozen=True)
class Speed:
    """What some steps took."""

    device: str
    """cpu, or the name of the GPU."""
    workers: int
    """Threads that shared each batch."""
    steps: int
    batch_tokens: int
    """Of the batches that were measured: fewer than the recipe's where a step of these takes too long."""
    tokens: float
    """Target tokens of a step."""
    seconds: float
    """Of a step."""
    update_seconds: float
    """Of these, what the optimiser took: as much whatever the batch."""
    processor_seconds: float
    """Of a step, of all threads together: what it would take alone on one of them."""
    threads: int
    """That PyTorch has."""

    @property
    def busy(self) -> float:
        """Share of the threads' time in which they really computed; the rest went to other programs, or to waiting."""
        return min(1.0, self.processor_seconds / (self.seconds * self.threads))

    @property
    def tokens_per_second(self) -> float:
        """As measured, updates included."""
        return self.tokens / self.seconds

    def seconds_for(self, tokens: float) -> float:
        """A step of so many target tokens."""
        return (self.seconds - self.update_seconds) * tokens / self.tokens + self.update_seconds


def measure_speed(
    recipe: Recipe,
    config: Config,
    lengths: tuple[float, float],
    seconds: float = 20.0,
    report: Callable[[float], None] = lambda share: None,
) -> Speed:
    """Train the recipe's network for some seconds on texts of such mean lengths; `report` hears what share is over."""
    torch.manual_seed(recipe.training.seed)
    model = make_network(recipe.family, asdict(config))
    model.to("cuda" if torch.cuda.is_available() else "cpu").train()
    device, settings = next(model.parameters()).device, recipe.training
    threads, started = torch.get_num_threads(), time.perf_counter()
    workers = Workers() if settings.compile else Workers.suited_to(device, settings.batch_tokens)
    with freed_memory_kept(), workers:
        smallest = _with_batches(recipe, min(settings.batch_tokens, workers.count * TOKENS_EACH))
        probe = [*_timed_steps(smallest, config, model, lengths, workers, lambda done: len(done) > WARMUP)][WARMUP]
        each = (probe.seconds - probe.updating) / smallest.training.batch_tokens
        room = (seconds / (WARMUP + LEAST) - probe.updating) / max(each, 1e-9)
        chosen = recipe
        if room < settings.batch_tokens * settings.accumulate:
            chosen = _with_batches(recipe, int(min(settings.batch_tokens, max(room, smallest.training.batch_tokens))))

        def enough(done: list[_Timed]) -> bool:
            share = (time.perf_counter() - started) / seconds
            report(min(1.0, share))
            return len(done) >= WARMUP + (LEAST if share < PATIENCE else 1) and share >= 1

        counted = _timed_steps(chosen, config, model, lengths, workers, enough)[WARMUP:]
    spent = sum(step.seconds for step in counted)
    return Speed(
        device="cpu" if device.type == "cpu" else torch.cuda.get_device_name(device),
        workers=workers.count,
        steps=len(counted),
        batch_tokens=chosen.training.batch_tokens,
        tokens=sum(step.tokens for step in counted) / len(counted),
        seconds=spent / len(counted),
        update_seconds=sum(step.updating for step in counted) / len(counted),
        processor_seconds=sum(step.processor for step in counted) / len(counted),
        threads=threads,
    )


class _Timed(NamedTuple):
    """A step."""

    tokens: int
    seconds: float
    updating: float
    processor: float


class _TimedTrainer(Trainer[Any]):
    """Notes how long updates take."""

    updating = 0.0

    def _update(self, gradients: list[Tensor], norm: float, rate: float) -> None:
        started = time.perf_counter()
        super()._update(gradients, norm, rate)
        self.updating += time.perf_counter() - started


def _timed_steps(
    recipe: Recipe,
    config: Config,
    model: Any,
    lengths: tuple[float, float],
    workers: Workers,
    enough: Callable[[list[_Timed]], bool],
) -> list[_Timed]:
    """Steps of the real loop, until there are enough."""
    task = made_up_task(recipe, config, model, lengths, workers)
    events: list[Stepped] = []
    done: list[_Timed] = []
    # The directory is for files that only `run` would write.
    trainer = _TimedTrainer(
        task,
        recipe.training.model_copy(update={"r_drop_share": 1.0}),  # the dearest steps
        Budget(steps=LONG_ENOUGH),
        Path("nowhere"),
        lambda event: events.append(event) if isinstance(event, Stepped) else None,
        workers=workers,
    )
    batches = chain.from_iterable(task.batches(epoch, 0) for epoch in count())
    while not enough(done):
        group = list(islice(batches, recipe.training.accumulate))
        before = time.perf_counter(), trainer.updating, time.process_time()
        trainer.step(group)
        after = time.perf_counter(), trainer.updating, time.process_time()
        done.append(_Timed(events[-1].tokens, *(late - early for late, early in zip(after, before, strict=True))))
    return done


def _with_batches(recipe: Recipe, tokens: int) -> Recipe:
    """The recipe with one batch of so many tokens for each step."""
    return recipe.with_overrides([f"training.batch_tokens={tokens}", "training.accumulate=1"])


def made_up_task(
    recipe: Recipe, config: Config, model: Any, lengths: tuple[float, float], workers: Workers
) -> Task[Any]:
    """The recipe's task, with data that is drawn."""
    if recipe.family == "transformer":
        recipe = recipe.with_overrides(["tokenizer.dropout=0"])  # there is no text that could be cut otherwise
        pairs = cast(Pairs, RandomPairs(lengths, (config.vocab_size, config.output_size), recipe.training.batch_tokens))
        return TranslationTask(model, cast(Any, None), pairs, DevSet(pairs, [], []), recipe, workers)
    examples = RandomExamples(recipe, config, lengths[0], next(model.parameters()).device)
    return PredictionTask(model, recipe, examples, examples, workers)


class RandomPairs:
    """Pairs as `transduce.data.shards.Pairs` gives them, drawn: ids alike often, lengths as uneven as sentences are."""

    def __init__(self, lengths: tuple[float, float], sizes: tuple[int, int], batch_tokens: int) -> None:
        generator = np.random.default_rng(0)
        self.count = math.ceil(BATCHES * batch_tokens / max(lengths))
        source = _lengths(lengths[0], self.count, generator)
        like = np.clip(source * lengths[1] / lengths[0] * generator.lognormal(0, 0.2, self.count), 1, LONGEST)
        self._lengths = {"source": source, "target": like.round().astype(np.int64)}
        self._ids = {
            side: generator.integers(UNKNOWN + 1, size, 2**16 + LONGEST, dtype=np.uint32)
            for side, size in zip(("source", "target"), sizes, strict=True)
        }
        self.tokens = {side: int(values.sum()) for side, values in self._lengths.items()}
        self.spans = [Span(0, self.count)]

    def __len__(self) -> int:
        return self.count

    def lengths(self, side: str, indices: Indices) -> npt.NDArray[np.int64]:
        """Token counts of some pairs."""
        chosen: npt.NDArray[np.int64] = self._lengths[side][indices]
        return chosen

    def ids(self, side: str, index: int) -> Ids:
        """One side of a pair: another stretch of drawn ids for each."""
        start = index * 40_503 % 2**16
        return self._ids[side][start : start + int(self._lengths[side][index])]


class RandomExamples:
    """Batches of texts or pictures for what names things, drawn; `transduce.training.tasks.prediction.Examples`."""

    def __init__(self, recipe: Recipe, config: Config, length: float, device: torch.device) -> None:
        self.recipe, self.config, self.device = recipe, config, device
        self.tokens = recipe.training.batch_tokens
        self.texts = RandomPairs((length, 1.0), (config.vocab_size, config.vocab_size), self.tokens)

    def plan(self, epoch: int) -> Iterator[Indices]:
        """Texts of like length together; windows of a stream and pictures are all alike."""
        if isinstance(self.config, VisionConfig):
            yield from [np.arange(max(1, self.tokens // (math.prod(self.config.grid) + 1)))] * BATCHES
        elif self.recipe.task == "language-model":
            yield from [np.arange(max(1, self.tokens // self.recipe.objective.context))] * BATCHES
        else:
            yield from BatchPlan(cast(Pairs, self.texts), self.tokens, self.recipe.training.seed).epoch(epoch)

    def batch(self, indices: Indices, drawn: tuple[int, ...] | None) -> Labelled:
        """Random ids or pixels, and random labels of the kind that the task asks for."""
        generator, config = torch.Generator().manual_seed(0 if drawn is None else drawn[1]), self.config
        rows = len(indices)
        if isinstance(config, VisionConfig):
            pictures = torch.randn(rows, config.channels, config.height, config.width, generator=generator)
            return Labelled(pictures.to(self.device), self._labels((rows, 1), generator))
        lengths = torch.full((rows,), self.recipe.objective.context)
        if self.recipe.task != "language-model":
            lengths = torch.from_numpy(self.texts.lengths("source", indices)) + 1
        real = torch.arange(int(lengths.max())) < lengths.unsqueeze(1)
        ids = torch.randint(UNKNOWN + 1, config.vocab_size, real.shape, generator=generator) * real
        if isinstance(config, EncoderConfig) and config.head == "sentence":
            return Labelled(ids.to(self.device), self._labels((rows, 1), generator))
        if self.recipe.task != "language-model":  # the mark at the end is not asked for
            real = torch.arange(real.size(1)) < lengths.unsqueeze(1) - 1
        if isinstance(config, EncoderConfig) and config.head == "masked":
            real &= torch.rand(real.shape, generator=generator) < self.recipe.objective.masked
        labels = self._labels(real.shape, generator)
        return Labelled(ids.to(self.device), labels.masked_fill(~real.to(self.device), IGNORED))

    def _labels(self, shape: Sequence[int], generator: torch.Generator) -> Tensor:
        return torch.randint(self.config.output_size, tuple(shape), generator=generator).to(self.device)


def _lengths(mean: float, number: int, generator: np.random.Generator) -> npt.NDArray[np.int64]:
    """So many lengths with a mean, spread as those of sentences: half of them between two thirds and one and a half."""
    drawn = generator.lognormal(math.log(mean) - SPREAD**2 / 2, SPREAD, number)
    clipped: npt.NDArray[np.int64] = np.clip(drawn.round(), 1, LONGEST).astype(np.int64)
    return clipped
