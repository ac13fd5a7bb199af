"""What a training run reports. The loop draws nothing: whoever listens may draw, write or ignore."""

from __future__ import annotations

from dataclasses import dataclass, field

__all__ = [
    "Averaged",
    "Cooling",
    "Event",
    "Finished",
    "Halved",
    "Resumed",
    "Sample",
    "Saved",
    "Skipped",
    "Started",
    "Stepped",
    "Transferred",
    "Validated",
]


@dataclass(frozen=True)
class Stepped:
    """The weights were updated."""

    step: int
    epoch: int
    loss: float
    """Per token, with label smoothing."""
    perplexity: float
    """Of the training tokens, without label smoothing."""
    rate: float
    gradient_norm: float
    tokens: int
    """Target tokens of the step."""
    seconds: float
    """Of training so far, over all continuations of the run."""


@dataclass(frozen=True)
class Sample:
    """A sentence of the dev set and how it is translated now."""

    source: str
    translation: str
    reference: str


@dataclass(frozen=True)
class Validated:
    """The dev set was scored."""

    step: int
    seconds: float
    scores: dict[str, float]
    better: bool
    """Whether these are the best weights so far; they are kept then."""
    samples: list[Sample] = field(default_factory=list)


@dataclass(frozen=True)
class Averaged:
    """Training is complete, and the mean of the snapshots was scored beside the best single weights."""

    step: int
    seconds: float
    steps: list[int]
    """Of the snapshots."""
    scores: dict[str, float]
    """Of the mean."""
    best_step: int
    best_scores: dict[str, float]
    """Of the best single weights."""
    better: bool
    """Whether the mean is better; it becomes the model then."""
    damaged: list[str]
    """Snapshots that were not sound and are left out."""


@dataclass(frozen=True)
class Cooling:
    """Nothing has got better for long, so the cooldown begins early."""

    step: int
    until: int
    """The step at which the rate will be zero, and training ends."""


@dataclass(frozen=True)
class Skipped:
    """A step was not taken, for a reason in words."""

    step: int
    reason: str


@dataclass(frozen=True)
class Halved:
    """A batch did not fit into memory, and its gradient was added up in parts; the step is the same."""

    step: int
    parts: int
    left_out: int
    """Rows that did not fit even by themselves."""


@dataclass(frozen=True)
class Saved:
    """A checkpoint is on disk."""

    step: int


@dataclass(frozen=True)
class Started:
    """The run begins, or begins again because it has no sound checkpoint."""

    damaged: list[str]
    """Checkpoints that were not sound."""
    step: int = 0
    repeats: int = 0
    """Steps after it that had been made before, and are made again."""


@dataclass(frozen=True)
class Transferred:
    """The run starts from another model's weights."""

    model: str
    taken: int
    """Tensors that are the other model's."""
    fresh: list[str]
    """Tensors that are drawn anew."""
    step: int = 0


@dataclass(frozen=True)
class Resumed:
    """The run goes on from a checkpoint."""

    step: int
    damaged: list[str]
    """Newer checkpoints that were not sound."""
    repeats: int = 0
    """Steps after it that had been made before, and are made again."""


@dataclass(frozen=True)
class Finished:
    """Training has ended, for a reason in words."""

    step: int
    reason: str
    complete: bool
    """False if it was stopped from outside and can go on."""


Event = Stepped | Validated | Averaged | Cooling | Skipped | Halved | Saved | Started | Transferred | Resumed | Finished
