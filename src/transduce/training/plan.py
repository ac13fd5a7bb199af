"""A plan of a training run before it begins: how much memory, how long, how much energy, and what to do if too much.

By arithmetic (`transduce.training.cost`), with a speed that was measured or that is assumed of a device.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from transduce.decoding import DecodingOptions
from transduce.errors import ConfigError
from transduce.model.attention import FUSED_FROM_KEYS
from transduce.model.config import TransformerConfig
from transduce.model.vision import VisionConfig
from transduce.model.workers import AT_ONCE, TOKENS_EACH
from transduce.training.cost import FILL, Anatomy, Load, anatomy, kept_numbers, optimizer_numbers, step_flops
from transduce.training.loss import CHUNK
from transduce.training.machines import Machine
from transduce.training.recipe import LABELLED, Recipe
from transduce.training.tasks.translation import decoded_at_once

__all__ = ["Memory", "Plan", "Planner", "Remedy", "planned_config"]

PROCESS = 310e6
"""Bytes of the process itself on a CPU: Python, PyTorch and all that is loaded (measured)."""
CONTEXT = 600e6
"""Bytes that CUDA takes of a GPU before anything is computed (untested: what others report)."""
FULLEST = 1.2
"""Tokens of the fullest batch, marks of start and end included, for each of the recipe's (measured on Tatoeba)."""
WASTE = 1.3
"""What the allocator takes for each byte of a batch: holes, and what an operation needs while it runs (measured)."""
DISTINCT = 0.4
"""Share of a part's target tokens that are no repetitions (measured on Tatoeba: 0.42 of 2,048, 0.32 of 4,096)."""
SHORTEST = 0.5
"""Length of the sentences that are the most in a batch when the dev set is translated, for each mean one."""
CHARACTERS, LABELS = 100, 10
"""Of a vocabulary of characters, and of what is told apart: they follow from data that is not there yet."""
MOST_DEVICES = 1024


@dataclass(frozen=True)
class Memory:
    """Bytes on each device at the worst moment of a run."""

    weights: float
    gradients: float
    """Their sum, and those of parts of a batch as far as these outgrow the activations whose place they take."""
    optimizer: float
    average: float
    """The moving average; or at the end the mean of snapshots, as far as it outgrows the activations."""
    activations: float
    """What is kept for the way back, of the parts of a batch that are computed at once."""
    logits: float
    """A chunk of them for each such part, and the gradient of the matrix that gives them."""
    validation: float
    """What translating the dev set takes, as far as it outgrows activations and logits."""
    process: float

    @property
    def total(self) -> float:
        """All of it."""
        return float(sum(vars(self).values()))


@dataclass(frozen=True)
class Remedy:
    """A change that makes a run fit."""

    change: str
    """What to write on the command line."""
    effect: str
    """In words."""
    total: float
    """Bytes on each device then."""


@dataclass(frozen=True)
class Plan:
    """What a run will take."""

    parameters: int
    steps: int
    tokens_per_step: float
    """Target tokens of a step, on all devices together."""
    flops_per_step: float
    flops: float
    """Of all steps."""
    memory: Memory
    limit: float | None
    """Bytes of a device."""
    seconds_per_step: float
    communication_seconds: float
    """Of these, what adding up the gradients of several devices takes."""
    hours: float
    kilowatt_hours: float
    occupied_flops: float | None
    """Time × devices × operations a second at best, as the paper counts its cost; None where the speed was measured."""
    epochs: float | None
    """Times that the corpus is seen, if its size is known."""
    remedies: list[Remedy] = field(default_factory=list)
    """What would make it fit, the nearest first."""

    @property
    def tokens_per_second(self) -> float:
        """Target tokens."""
        return self.tokens_per_step / self.seconds_per_step

    @property
    def fits(self) -> bool | None:
        """Whether memory is large enough; None if its size is not known."""
        return None if self.limit is None else self.memory.total <= self.limit


def planned_config(recipe: Recipe) -> TransformerConfig:
    """The shape of the recipe's network, as far as it is known before there is data."""
    size = CHARACTERS if recipe.tokenizer.kind == "char" else recipe.tokenizer.vocab_size
    of_data: dict[str, Any] = {"labels": LABELS} if recipe.task in LABELLED else {}
    if recipe.task == "image-classification":
        patch = recipe.model.get("patch", VisionConfig.patch)
        side = patch * max(1, round(28 / patch))
        of_data |= {"height": side, "width": side}
    config = recipe.config(size, None if recipe.tokenizer.shared else size, **of_data)
    if not isinstance(config, TransformerConfig):
        raise ConfigError(
            "the costs of recurrent networks are not planned.",
            remedy="Plan a Transformer (network=transformer), or train for some minutes and look.",
        )
    return config


class Planner:
    """Plans a recipe for a machine and a corpus of such mean lengths (tokens of a source, of its target)."""

    def __init__(self, recipe: Recipe, machine: Machine, lengths: tuple[float, float] = (25.0, 25.0)) -> None:
        self.recipe, self.machine, self.lengths = recipe, machine, lengths
        self.config = planned_config(recipe)
        self.parts: Anatomy = anatomy(recipe.family, self.config)

    def plan(
        self,
        step_seconds: Callable[[float], float] | None = None,
        steps: int | None = None,
        pairs: int | None = None,
        watts: float | None = None,
    ) -> Plan:
        """All of it; `step_seconds` says what the dearest steps take one device by their target tokens, if known."""
        machine, training = self.machine, self.recipe.training
        load = self.load()
        flops = self.step_flops()
        share = load.asked * training.accumulate / machine.count
        if step_seconds is None:
            computing = flops / machine.count / (machine.device.flops * machine.device.utilisation)
        else:
            computing = step_seconds(share) * flops / self.step_flops(dearest=True)
        sending = self.sent_bytes() / machine.bandwidth
        seconds = computing + sending
        rows = load.rows * training.accumulate
        steps = steps or self._steps(seconds, rows, pairs)
        hours = steps * seconds / 3600
        occupied = None if step_seconds else steps * seconds * machine.count * machine.device.flops
        memory = self.memory()
        return Plan(
            parameters=self.parts.parameters,
            steps=steps,
            tokens_per_step=load.asked * training.accumulate,
            flops_per_step=flops,
            flops=flops * steps,
            memory=memory,
            limit=machine.memory,
            seconds_per_step=seconds,
            communication_seconds=sending,
            hours=hours,
            kilowatt_hours=hours * machine.count * (watts or machine.device.watts) / 1000,
            occupied_flops=occupied,
            epochs=None if pairs is None else steps * rows / pairs,
            remedies=list(self._remedies(memory)),
        )

    def load(self, tokens: float | None = None) -> Load:
        """A usual batch, of all devices together."""
        recipe, (source, target) = self.recipe, self.lengths
        tokens = recipe.training.batch_tokens if tokens is None else tokens
        if isinstance(self.config, VisionConfig):
            patches = math.prod(self.config.grid) + 1
            rows = max(1.0, tokens // patches)
            return Load(rows, patches, asked=rows)
        if recipe.task == "language-model":
            context = recipe.objective.context
            rows = max(1.0, tokens // context)
            return Load(rows, context, asked=rows * context)
        if recipe.family == "transformer":
            longer = max(source, target)
            rows = max(1.0, tokens * FILL / longer)
            return Load(rows, source / FILL + 1, target / FILL + 1, asked=rows * (target + 1))
        rows = max(1.0, tokens * FILL / source)
        asked = {"masked-language-model": recipe.objective.masked * source, "classification": 1.0}
        return Load(rows, source / FILL + 1, asked=rows * asked.get(recipe.task, source))

    def step_flops(self, dearest: bool = False) -> float:
        """Operations of a step, on all devices together: on average, or of those that have R-Drop if only some have."""
        training, load = self.recipe.training, self.load()
        muon = training.optimizer == "muon"
        compared = self._compared(self._part()[0])
        plain, doubled = (
            step_flops(self.parts, self.recipe.family, self.config, load, r_drop, compared=compared)
            for r_drop in (False, training.r_drop > 0)
        )
        once = plain + (doubled - plain) * (1.0 if dearest else training.r_drop_share)
        update = step_flops(self.parts, self.recipe.family, self.config, Load(0, 0), muon=muon)
        return once * training.accumulate + update * self.machine.count  # each device makes the whole update

    def sent_bytes(self) -> float:
        """What each device sends for a step: gradients are added up in a ring, 2 (N-1)/N of them; sharded, 3."""
        times = 3 if self.machine.sharded else 2
        return times * (self.machine.count - 1) / self.machine.count * self.parts.parameters * 4

    def memory(self) -> Memory:
        """What each device holds at the worst moment."""
        machine, training, P = self.machine, self.recipe.training, self.parts.parameters
        share = 1 / machine.count if machine.sharded else 1.0
        weights = 4.0 * P * (1.5 if machine.device.half else 1.0)  # with a copy in bfloat16
        gathered = self._gathered() if machine.sharded and machine.count > 1 else 0.0
        part, at_once, rounds = self._part()
        activations = at_once * WASTE * self._kept_bytes(part)
        chunk = 4.0 * min(CHUNK, part.asked) * self._compared(part)
        # The matrix's gradient, once more as it is handed on, and what goes in, its gradient and the right answers.
        beside = 8.0 * self.parts.output.weights + 12.0 * part.asked * self.config.d_model
        logits = at_once * WASTE * (chunk + beside)
        own = 4.0 * P * share
        outgrown = 0.0
        if at_once * rounds > 1:  # the parts have gradients of their own, and with several rounds one waits to be added
            outgrown = max(0.0, at_once * own - activations - logits) + own * (rounds > 1)
        # Validating, and averaging at the end, come at other moments: they have the place of a batch's part.
        room = activations + logits + outgrown
        validation = max(0.0, at_once * self._validation_bytes() - room)
        average = 4.0 * P * share if training.average == "moving" else 0.0
        if training.average in ("last", "best") and training.average_count > 1 and machine.is_cpu:
            average = max(0.0, 12.0 * P - room - validation)  # sums in double precision, and one of the snapshots
        return Memory(
            weights=weights * share + gathered,
            gradients=own + outgrown,
            optimizer=4.0 * optimizer_numbers(self.parts, training.optimizer == "muon") * share,
            average=average,
            activations=activations,
            logits=logits,
            validation=validation,
            process=PROCESS if machine.is_cpu else CONTEXT,
        )

    def _compared(self, part: Load) -> float:
        """How many of the outputs a token of a part is compared with."""
        sampled, outputs = self.recipe.training.sampled_softmax, self.parts.output.outputs
        return min(outputs, sampled + DISTINCT * part.asked) if sampled else outputs

    def _part(self) -> tuple[Load, int, int]:
        """What is computed in one go, how many such parts at once, and how often."""
        machine, D = self.machine, self.config.d_model
        marked = self.recipe.task not in ("language-model", "image-classification")
        full = self.load().part(machine.count / (FULLEST if marked else 1.0))
        if not machine.is_cpu:
            return full, 1, 1
        size = full.read_and_written * D
        rounds = math.ceil(size / (machine.workers * AT_ONCE))
        # The largest parts are those of batches that just need no further round.
        part = full.part(max(size / AT_ONCE, machine.workers))
        return (part if part.rows >= 1 else full.part(full.rows)), machine.workers, rounds

    def _kept_bytes(self, part: Load) -> float:
        machine, config = self.machine, self.config
        kept = kept_numbers(self.recipe.family, config, part)
        plain = machine.is_cpu and (max(part.source, part.target) < FUSED_FROM_KEYS or config.attention_dropout)
        size = kept.operands * (2 if machine.device.half else 4) + kept.residuals * 4
        size += kept.dropped * (4 if machine.is_cpu else 1) + kept.scores * (4 if plain else 0)
        return size * (2 if self.recipe.training.r_drop else 1)

    def _validation_bytes(self) -> float:
        """Keys and values of a batch of short sentences, of which early models write as much as they may; logits."""
        if self.recipe.family != "transformer" or self.recipe.objective.span_corruption:
            return 0.0
        side, shortest = self.config.decoder_side, max(3.0, self.lengths[0] * SHORTEST)
        positions = decoded_at_once(self.config.d_model, self.machine.is_cpu)
        rows = positions / (shortest + DecodingOptions().max_length(int(shortest)))
        width = side.key_value_groups * (side.key_width + side.value_width)
        remembered = positions * width * side.decoder_layers
        return 4.0 * (remembered + 3 * rows * self.parts.output.outputs)

    def _gathered(self) -> float:
        """Weights that a sharded device has whole for a while: of a layer, of the next one, and the tables."""
        layers = max(1, self.config.encoder_layers + self.config.decoder_layers)
        return 8.0 * sum(matrix.weights for matrix in self.parts.layered) / layers + 4.0 * self.parts.tables

    def check_budget(self, pairs: int | None = None) -> None:
        """Say what is missing to know how many steps there are: before anything is measured."""
        self._steps(1.0, 1.0, pairs)

    def _steps(self, seconds: float, rows: float, pairs: int | None) -> int:
        """How many the recipe's budget has room for, whichever limit comes first."""
        budget = self.recipe.budget
        limits = [budget.steps] if budget.steps is not None else []
        if budget.minutes is not None:
            limits.append(max(1, int(budget.minutes * 60 / seconds)))
        if budget.epochs is not None and pairs is not None:
            limits.append(max(1, math.ceil(budget.epochs * pairs / rows)))
        if not limits:
            known = "is in epochs" if budget.epochs is not None else "says nothing of when to stop"
            raise ConfigError(
                f"the recipe's budget {known}, so there is no number of steps to plan for.",
                remedy="Give --pairs, the size of the corpus, or --steps." if budget.epochs else "Give --steps.",
            )
        return min(limits)

    # What to change if it is too much

    def _remedies(self, memory: Memory) -> Iterator[Remedy]:
        """The smallest change of each kind that makes it fit, those that leave the model as it is first."""
        if self.machine.memory is None or memory.total <= self.machine.memory:
            return
        for tries in (self._smaller_batches, self._fewer_workers, self._more_devices, self._shards, self._narrower):
            found = next((remedy for remedy in tries() if remedy.total <= self.machine.memory), None)
            if found is not None:
                yield found

    def _smaller_batches(self) -> Iterator[Remedy]:
        training = self.recipe.training
        for times in (2, 4, 8, 16, 32, 64):
            if (tokens := training.batch_tokens // times) < TOKENS_EACH:
                return
            change = [f"training.batch_tokens={tokens}", f"training.accumulate={training.accumulate * times}"]
            yield self._changed(" ".join(change), "the same steps, in smaller batches", change)

    def _fewer_workers(self) -> Iterator[Remedy]:
        if self.machine.is_cpu and self.machine.workers > 1:
            total = Planner(self.recipe, replace(self.machine, workers=1), self.lengths).memory().total
            yield Remedy("OMP_NUM_THREADS=1", "one thread, slower", total)

    def _more_devices(self) -> Iterator[Remedy]:
        for devices in _doubled(self.machine.count):
            total = Planner(self.recipe, replace(self.machine, count=devices), self.lengths).memory().total
            yield Remedy(f"--devices {devices}", "the same steps, each batch shared out", total)

    def _shards(self) -> Iterator[Remedy]:
        for devices in (self.machine.count, *_doubled(self.machine.count)):
            machine = replace(self.machine, count=devices, sharded=True)
            total = Planner(self.recipe, machine, self.lengths).memory().total
            if devices > 1 and not self.machine.sharded:
                yield Remedy(f"--devices {devices} --shard", "the same steps, weights shared out too (FSDP)", total)

    def _narrower(self) -> Iterator[Remedy]:
        config = self.config
        for times in (2, 4, 8, 16):
            if config.heads % times or config.d_model // times < 32:
                return
            wide = {"d_model": config.d_model // times, "d_ff": config.d_ff // times, "heads": config.heads // times}
            change = [f"model.{name}={value}" for name, value in wide.items()]
            try:
                yield self._changed(" ".join(change), "another, smaller model", change)
            except ConfigError:  # such as d_k or key_value_heads that do not suit it
                return

    def _changed(self, change: str, effect: str, settings: list[str]) -> Remedy:
        changed = Planner(self.recipe.with_overrides(settings), self.machine, self.lengths)
        return Remedy(change, effect, changed.memory().total)


def _doubled(count: int) -> Iterator[int]:
    while (count := 2 * count) <= MOST_DEVICES:
        yield count
