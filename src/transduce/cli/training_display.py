"""How training looks in a terminal; without one, a line per validation."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, Progress, SpinnerColumn, TaskID, TextColumn

from transduce.training.events import (
    Averaged,
    Cooling,
    Event,
    Finished,
    Halved,
    Resumed,
    Skipped,
    Started,
    Stepped,
    Transferred,
    Validated,
)

if TYPE_CHECKING:
    from transduce.data.prepare import Prepared, Report
    from transduce.text import Vocabularies
    from transduce.training.recipe import Budget

__all__ = ["TrainingDisplay"]

SMOOTHING = 0.98
"""Of the loss and speed that are shown: a step's own jump about."""


NAMES = {
    "bleu": "BLEU {:.1f}",
    "chrf": "chrF {:.1f}",
    "f1": "F1 {:.1f}",
    "accuracy": "accuracy {:.2f} %",
    "loss": "loss {:.4f}",
    "perplexity": "perplexity {:.2f}",
}
"""How scores are written; their order is the task's."""


class TrainingDisplay:
    """Draws the events of a run."""

    def __init__(self, console: Console, budget: Budget) -> None:
        self.console, self.budget = console, budget
        self._progress: Progress | None = None
        self._task = TaskID(0)
        self._loss: float | None = None
        self._tokens = 0
        self._first_seconds: float | None = None
        self._cooled_by = 0
        self._score = "BLEU –"

    @contextmanager
    def preparation(self) -> Iterator[Report]:
        """Shows what is being prepared."""
        with self.console.status("Preparing …") as status:

            def report(stage: str, done: int) -> None:
                status.update(f"Preparing: {stage}, {done:,} pairs")

            yield report

    def say(self, text: str) -> None:
        """A line of its own."""
        self.console.print(escape(text))

    def describe(self, prepared: Prepared) -> None:
        """Says what the corpus has become."""
        counts = prepared.counts
        dropped = {name: count for name, count in counts.items() if name not in ("read", "kept") and count}
        reasons = ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in dropped.items()) or "none"
        self.console.print(
            f"{len(prepared.train):,} pairs to train on, {len(prepared.dev):,} to measure on, "
            f"{_sizes(prepared.vocabularies)}; dropped: {reasons}"
        )

    @contextmanager
    def training(self) -> Iterator[None]:
        """A bar with what matters, while training lasts."""
        columns = (
            SpinnerColumn(),
            TextColumn("step {task.fields[step]}"),
            BarColumn(bar_width=24),
            TextColumn("loss {task.fields[loss]} · {task.fields[speed]} tokens/s · {task.fields[score]}"),
            TextColumn("{task.fields[left]}"),
        )
        with Progress(*columns, console=self.console, disable=not self.console.is_terminal) as progress:
            self._progress = progress
            self._task = progress.add_task("", total=1.0, step="0", loss="–", speed="–", score=self._score, left="")
            yield
        self._progress = None

    def show(self, event: Event) -> None:
        """Draw one event."""
        if isinstance(event, Stepped):
            self._show_step(event)
        elif isinstance(event, Validated):
            self._show_validation(event)
        elif isinstance(event, Averaged):
            self._show_average(event)
        elif isinstance(event, Started | Resumed):
            if event.step:
                again = f"; {event.repeats:,} after it are made again" if event.repeats else ""
                self.console.print(f"Going on from step {event.step:,}{again}")
            for path in event.damaged:
                self.console.print(f"  passed over a damaged checkpoint: {escape(path)}")
        elif isinstance(event, Transferred):
            new = (
                f"new: {', '.join(event.fresh[:4])}{' …' if len(event.fresh) > 4 else ''}"
                if event.fresh
                else "nothing is new"
            )
            self.say(f"Starts from {event.model}: {event.taken} tensors taken over, {new}")
        elif isinstance(event, Cooling):
            self._cooled_by = event.until
            self.console.print(
                f"step {event.step:,}: nothing gets better, so the cooldown begins early, up to step {event.until:,}"
            )
        elif isinstance(event, Halved):
            lost = f", {event.left_out} pairs left out" if event.left_out else ""
            self.console.print(
                f"step {event.step:,}: a batch too large for memory was done in {event.parts} parts{lost}; "
                "others as large are halved at once"
            )
        elif isinstance(event, Skipped):
            self.console.print(f"step {event.step:,} skipped: {event.reason}")
        elif isinstance(event, Finished):
            self.console.print(f"Finished at step {event.step:,}: {event.reason}.")

    def _show_step(self, event: Stepped) -> None:
        self._loss = event.loss if self._loss is None else SMOOTHING * self._loss + (1 - SMOOTHING) * event.loss
        if self._first_seconds is None:
            self._first_seconds = event.seconds
        else:
            self._tokens += event.tokens
        if self._progress is None:
            return
        elapsed = event.seconds - self._first_seconds
        speed = f"{self._tokens / elapsed:,.0f}" if elapsed else "–"
        share = self._share(event)
        left = f"{_clock(event.seconds * (1 - share) / share)} left" if share else ""
        self._progress.update(
            self._task, completed=share, step=f"{event.step:,}", loss=f"{self._loss:.3f}", speed=speed,
            score=self._score, left=left,
        )  # fmt: skip

    def _share(self, event: Stepped) -> float:
        """How much of the budget is spent; 0 if there is none."""
        budget = self.budget
        shares = [
            event.step / budget.steps if budget.steps else 0.0,
            event.epoch / budget.epochs if budget.epochs else 0.0,
            event.seconds / 60 / budget.minutes if budget.minutes else 0.0,
            event.step / self._cooled_by if self._cooled_by else 0.0,
        ]
        return min(1.0, max(shares))

    def _show_validation(self, event: Validated) -> None:
        self._score = _scores(dict(list(event.scores.items())[:1]))
        mark = " (best)" if event.better else ""
        self.console.print(f"{_clock(event.seconds)}  step {event.step:,}: {_scores(event.scores)}{mark}")
        for sample in event.samples[:1]:
            shown = f"{sample.source} → {sample.translation}".replace("\n", "↵")
            self.console.print(f"      {escape(shown)}", style="dim")

    def _show_average(self, event: Averaged) -> None:
        steps = ", ".join(map(str, event.steps))
        for path in event.damaged:
            self.console.print(f"  left out a damaged snapshot: {escape(path)}")
        self.console.print(f"{_clock(event.seconds)}  mean of steps {steps}: {_scores(event.scores)}")
        kept = "the mean" if event.better else f"the single weights of step {event.best_step:,}"
        self.console.print(f"      best single, step {event.best_step:,}: {_scores(event.best_scores)}; kept: {kept}")


def _scores(scores: dict[str, float]) -> str:
    shown = [NAMES[name].format(value) for name, value in scores.items() if name != "loss" or len(scores) < 3]
    return ", ".join(shown) or "unknown"


def _sizes(vocabularies: Vocabularies) -> str:
    if vocabularies.shared:
        return f"vocabulary {vocabularies.source.size:,}"
    return f"vocabularies {vocabularies.source.size:,} and {vocabularies.target.size:,}"


def _clock(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02}:{rest:02}"
