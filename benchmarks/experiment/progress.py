"""How far a run is, by the last lines of its log."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transduce.training.recipe import Budget

__all__ = ["RunProgress", "has_gone_beyond", "last_events", "progress_of"]

TAIL = 1 << 16
"""Bytes that are read of a log that grows."""
LAST_STEP = 30
"""Seconds by which the step that ends a run may be late."""


@dataclass(frozen=True)
class RunProgress:
    """What a run is at."""

    share: float
    """Of its budget, from 0 to 1."""
    words: str
    """For people."""


def last_events(log: Path) -> list[dict[str, Any]]:
    """The last lines of a log, as events."""
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - TAIL))
            lines = file.read().splitlines()
    except OSError:
        return []
    events = []
    for line in lines:
        try:
            events.append(json.loads(line))
        except ValueError:  # half a line, at the start or at the end
            continue
    return events


def has_gone_beyond(log: Path, budget: Budget) -> bool:
    """Whether a run has been trained for longer than a budget allows, which is then not what it shows."""
    step = next((event for event in reversed(last_events(log)) if event["event"] == "Stepped"), None)
    if step is None:
        return False
    return bool(
        (budget.steps and step["step"] > budget.steps)
        or (budget.minutes and step["seconds"] > 60 * budget.minutes + LAST_STEP)
        or (budget.epochs and step["epoch"] >= budget.epochs)
    )


def progress_of(log: Path, budget: Budget) -> RunProgress:
    """Of a run that is under way."""
    events = last_events(log)
    step = next((event for event in reversed(events) if event["event"] == "Stepped"), None)
    if step is None:
        return RunProgress(0.0, "preparing")
    if events[-1]["event"] == "Finished" and events[-1]["complete"]:
        return RunProgress(1.0, "measuring")
    shares = [
        step["step"] / budget.steps if budget.steps else 0.0,
        step["seconds"] / 60 / budget.minutes if budget.minutes else 0.0,
        step["epoch"] / budget.epochs if budget.epochs else 0.0,
    ]
    checked = next((event for event in reversed(events) if event["event"] == "Validated"), None)
    words = f"step {step['step']:,}"
    if checked is not None:
        words += f", BLEU {checked['scores']['bleu']:.1f}"
    return RunProgress(min(1.0, max(shares)), words)
