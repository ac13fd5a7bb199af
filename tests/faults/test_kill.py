"""A run that is killed without warning, again and again, ends with the weights of one that was not."""

from __future__ import annotations

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.faults.conftest import Lives, opened

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks and signals are POSIX")

KILLS, STEPS = 20, 60
SETTINGS = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32", "model.d_ff=64", "model.dropout=0.2",
    "tokenizer.vocab_size=300", "tokenizer.dropout=0.1", "training.batch_tokens=1024", "training.word_dropout=0.1",
    "training.r_drop=1.0", "training.accumulate=2", "training.checkpoint_every=3", "training.validate_every=30",
]  # fmt: skip


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    generator = random.Random(3)
    words = [[generator.choice("abcdefghij") * generator.randint(1, 3) for _ in range(6)] for _ in range(3000)]
    (tmp_path / "train.src").write_text("".join(" ".join(each) + "\n" for each in words))
    (tmp_path / "train.tgt").write_text("".join(" ".join(each[::-1]) + "\n" for each in words))
    return tmp_path


@pytest.fixture
def lives(corpus: Path) -> Iterator[Lives]:
    # Two workers share each step: threads must not make it a matter of luck.
    with opened([str(corpus / "train.src"), str(corpus / "train.tgt"), *SETTINGS], threads=2) as lives:
        yield lives


def checkpoint_steps(model: Path) -> list[str]:
    folder = model / "run" / "checkpoints"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_twenty_kills_at_random_moments_change_nothing(corpus: Path, lives: Lives) -> None:
    lives.finish(corpus / "whole", STEPS)
    model, generator, damaged = corpus / "killed", random.Random(7), False
    for kill in range(KILLS):
        # The log grows with every step: wait for some, so that there is progress between kills, then strike.
        lines, pause = generator.randint(1, 8), generator.random() * 0.05
        end, said = lives.told(model, STEPS, signal.SIGKILL, lines, pause)
        assert end == -signal.SIGKILL, said
        newest = sorted((model / "run/checkpoints").glob("step-*"), key=lambda path: path.stat().st_mtime)
        if not damaged and len(newest) > 1 and kill > 5:  # once, the newest checkpoint rots as well
            weights = newest[-1] / "tensors.safetensors"
            weights.write_bytes(weights.read_bytes()[:-100])
            damaged = True
    assert damaged
    lives.finish(model, STEPS)
    ours, theirs = ((corpus / name / "model.safetensors").read_bytes() for name in ("killed", "whole"))
    assert ours == theirs


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_saves_first_and_the_same_command_goes_on(
    corpus: Path, lives: Lives, number: signal.Signals
) -> None:
    model = corpus / "model"
    _, said = lives.told(model, 30, number, lines=10)
    assert "stopped; run the same command to go on" in said
    assert checkpoint_steps(model)
    assert not (model / "config.json").exists()
    again = lives.finish(model, 30)
    assert "Going on from step" in again
    assert "Finished at step 30" in again
    assert (model / "config.json").exists()
