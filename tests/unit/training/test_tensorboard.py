"""Curves for TensorBoard, read back with TensorBoard's own reader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

from transduce.training.events import Averaged, Event, Resumed, Sample, Started, Stepped, Validated
from transduce.training.tensorboard import TensorBoard


def stepped(step: int, loss: float) -> Stepped:
    return Stepped(step, 0, loss, 2 * loss, rate=0.5, gradient_norm=3.0, tokens=100, seconds=step * 0.25)


def validated(step: int, bleu: float) -> Validated:
    samples = [Sample("Hello", f"Hallo {step}", "Hallo!"), Sample("Bye", "Tschüs", "Tschüs!")]
    return Validated(step, step * 0.25, {"bleu": bleu, "loss": 1.5}, better=True, samples=samples)


def write(directory: Path, *events: Event) -> None:
    with TensorBoard(directory) as board:
        for event in events:
            board.write(event)


def read(directory: Path) -> EventAccumulator:
    return EventAccumulator(str(directory)).Reload()  # type: ignore[no-untyped-call]


def curve(board: EventAccumulator, name: str) -> list[tuple[int, float]]:
    return [(point.step, round(point.value, 4)) for point in board.Scalars(name)]


@pytest.fixture
def board(tmp_path: Path) -> EventAccumulator:
    """Killed after step 49, with step 20 as its last checkpoint; then once more from the start of step 21."""
    first = [stepped(step, 5.0) for step in range(1, 21)]
    lost = [stepped(step, 77.0) for step in range(21, 50)]
    write(tmp_path, Started([]), *first, validated(20, 11.0), *lost, validated(40, 77.0))
    second = [stepped(step, 4.0) for step in range(21, 41)]
    mean = Averaged(40, 10.0, [20, 40], {"bleu": 23.0}, 40, {"bleu": 22.0}, better=True, damaged=[])
    write(tmp_path, Resumed(20, []), *second, validated(40, 22.0), mean)
    return read(tmp_path)


def test_a_resumed_run_has_each_point_once_and_none_that_was_taken_back(board: EventAccumulator) -> None:
    assert curve(board, "training/loss") == [(10, 5.0), (20, 5.0), (30, 4.0), (40, 4.0)]
    assert curve(board, "training/perplexity") == [(10, 10.0), (20, 10.0), (30, 8.0), (40, 8.0)]
    assert curve(board, "dev/bleu") == [(20, 11.0), (40, 22.0)]


def test_all_that_is_promised_is_there(board: EventAccumulator) -> None:
    assert set(board.Tags()["scalars"]) == {  # type: ignore[no-untyped-call]
        "training/loss", "training/perplexity", "training/rate", "training/gradient norm", "training/tokens per second",
        "dev/bleu", "dev/loss", "dev of the mean/bleu",
    }  # fmt: skip
    assert curve(board, "training/rate")[0] == (10, 0.5)
    assert curve(board, "training/gradient norm")[0] == (10, 3.0)
    assert curve(board, "training/tokens per second") == [(10, 400.0), (20, 400.0), (30, 400.0), (40, 400.0)]
    assert curve(board, "dev of the mean/bleu") == [(40, 23.0)]


def test_samples_are_texts(board: EventAccumulator) -> None:
    """By step: this reader takes back curves, and of texts the later one of a step counts."""
    texts = {event.step: event.tensor_proto.string_val[0].decode() for event in board.Tensors("sample/1/text_summary")}
    assert texts == {step: f"Hello\n\n→ Hallo {step}\n\n= Hallo!" for step in (20, 40)}


def test_a_run_that_starts_again_without_a_checkpoint_leaves_no_old_curve(tmp_path: Path) -> None:
    write(tmp_path, Started([]), *(stepped(step, 77.0) for step in range(1, 31)))
    write(tmp_path, Started([]), *(stepped(step, 5.0) for step in range(1, 21)))
    assert curve(read(tmp_path), "training/loss") == [(10, 5.0), (20, 5.0)]


def test_without_the_package_nothing_happens_and_nothing_is_imported(tmp_path: Path) -> None:
    code = f"""
import sys
sys.modules["tensorboard"] = None  # as if it were not installed
from pathlib import Path
from transduce.training.events import Started, Stepped
from transduce.training.tensorboard import TensorBoard
with TensorBoard(Path({str(tmp_path / "board")!r})) as board:
    board.write(Started([]))
    board.write(Stepped(10, 0, 1.0, 2.0, 0.5, 3.0, 100, 2.5))
sys.exit("torch.utils.tensorboard" in sys.modules or "torch" in sys.modules)
"""
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
    assert not (tmp_path / "board").exists()
