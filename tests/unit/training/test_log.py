"""The log of a run tells one story, however often the run was killed."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.training.events import Event, Finished, Halved, Resumed, Saved, Skipped, Started, Stepped
from transduce.training.log import EventLog, read_log


def stepped(step: int, loss: float = 1.0) -> Stepped:
    return Stepped(step, 0, loss, 2.0, 0.1, 1.0, 10, float(step))


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.jsonl"


def write(log: Path, *events: Event) -> None:
    with EventLog(log) as open_log:
        for event in events:
            open_log.write(event)


def story(log: Path) -> list[tuple[str, int]]:
    return [(event["event"], event["step"]) for event in read_log(log)]


def test_what_was_told_of_steps_after_the_checkpoint_is_taken_back(log: Path) -> None:
    write(log, Started([]), stepped(1), stepped(2), Saved(2), stepped(3, 77.0), Skipped(4, "…"), stepped(4, 77.0))
    write(log, Resumed(2, []), Halved(3, 2, 0), stepped(3, 0.5), Finished(3, "done", True))
    assert story(log) == [
        ("Started", 0), ("Stepped", 1), ("Stepped", 2), ("Saved", 2), ("Resumed", 2), ("Halved", 3), ("Stepped", 3),
        ("Finished", 3),
    ]  # fmt: skip
    assert [event["loss"] for event in read_log(log) if event["event"] == "Stepped"] == [1.0, 1.0, 0.5]


def test_a_run_without_a_checkpoint_begins_its_story_again(log: Path) -> None:
    write(log, Started([]), stepped(1, 77.0), stepped(2, 77.0))
    write(log, Started([]), Skipped(1, "…"), stepped(1))
    assert story(log) == [("Started", 0), ("Started", 0), ("Skipped", 1), ("Stepped", 1)]


def test_half_a_line_spoils_no_other(log: Path) -> None:
    write(log, Started([]), stepped(1))
    log.write_bytes(log.read_bytes() + '{"event": "Validated", "step": 1, "samples": "ä'.encode()[:-1])
    write(log, stepped(2))
    assert story(log) == [("Started", 0), ("Stepped", 1), ("Stepped", 2)]
    assert log.read_bytes().count(b"\n") == 4
