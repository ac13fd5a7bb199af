"""A run's curves for TensorBoard, where it is installed."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from transduce.training.events import Averaged, Event, Resumed, Started, Stepped, Validated

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["TensorBoard"]

EVERY = 10
"""Steps between points of a curve."""


class TensorBoard:
    """Listens to a run's events and writes curves and sample translations; without the package it does nothing."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self._writer: SummaryWriter | None = None
        self._tokens = 0
        self._since: float | None = None
        """Seconds of training when the tokens were last counted from zero."""

    def __enter__(self) -> TensorBoard:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._writer is not None:
            self._writer.close()

    def write(self, event: Event) -> None:
        """Take in one event."""
        if isinstance(event, Started | Resumed):
            self._begin(event.step)
        elif self._writer is None:
            return
        elif isinstance(event, Stepped):
            self._write_step(self._writer, event)
        elif isinstance(event, Validated):
            self._write_scores(self._writer, "dev", event.step, event.scores)
            for number, sample in enumerate(event.samples, 1):
                lines = f"{sample.source}\n\n→ {sample.translation}\n\n= {sample.reference}"
                self._writer.add_text(f"sample/{number}", lines, event.step)
            self._tokens, self._since = 0, event.seconds
        elif isinstance(event, Averaged):
            self._write_scores(self._writer, "dev of the mean", event.step, event.scores)

    def _begin(self, step: int) -> None:
        if find_spec("tensorboard") is None:
            return
        try:
            from torch.utils.tensorboard import SummaryWriter
        except ImportError:  # a version that PyTorch cannot use: no reason not to train
            return
        # What an earlier start has reported of later steps is taken back.
        self._writer = SummaryWriter(str(self.directory), purge_step=step + 1)

    def _write_step(self, writer: SummaryWriter, event: Stepped) -> None:
        if self._since is None:
            self._since = event.seconds
        else:
            self._tokens += event.tokens
        if event.step % EVERY:
            return
        values = {
            "loss": event.loss,
            "perplexity": event.perplexity,
            "rate": event.rate,
            "gradient norm": event.gradient_norm,
        }
        if event.seconds > self._since:
            values["tokens per second"] = self._tokens / (event.seconds - self._since)
        self._tokens, self._since = 0, event.seconds
        self._write_scores(writer, "training", event.step, values)

    @staticmethod
    def _write_scores(writer: SummaryWriter, group: str, step: int, values: dict[str, float]) -> None:
        for name, value in values.items():
            writer.add_scalar(f"{group}/{name}", value, step)
        writer.flush()  # a run that is killed does not tell again what comes before its last checkpoint
