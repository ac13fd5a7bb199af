"""A run that is killed without warning, again and again, ends with the weights of one that was not."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from tests.faults.conftest import opened

KILLS, STEPS = 20, 60
ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "2"}
"""Two workers share each step: threads must not make it a matter of luck."""
SETTINGS = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32", "model.d_ff=64", "model.dropout=0.2",
    "tokenizer.vocab_size=300", "tokenizer.dropout=0.1", "training.batch_tokens=1024", "training.word_dropout=0.1",
    "training.r_drop=1.0", "training.accumulate=2", "training.checkpoint_every=3", "training.validate_every=30",
]  # fmt: skip


def command(directory: Path, model: Path, steps: int) -> list[str]:
    files = [str(directory / "train.src"), str(directory / "train.tgt")]
    return [sys.executable, "-m", "transduce", "train", *files, "-o", str(model), "--steps", str(steps), *SETTINGS]


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    generator = random.Random(3)
    words = [[generator.choice("abcdefghij") * generator.randint(1, 3) for _ in range(6)] for _ in range(3000)]
    (tmp_path / "train.src").write_text("".join(" ".join(each) + "\n" for each in words))
    (tmp_path / "train.tgt").write_text("".join(" ".join(each[::-1]) + "\n" for each in words))
    return tmp_path


def checkpoint_steps(model: Path) -> list[str]:
    folder = model / "run" / "checkpoints"
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_twenty_kills_at_random_moments_change_nothing(corpus: Path) -> None:
    with opened([str(corpus / "train.src"), str(corpus / "train.tgt"), *SETTINGS], threads=2) as lives:
        lives.finish(corpus / "whole", STEPS)
        model, generator, damaged = corpus / "killed", random.Random(7), False
        for kill in range(KILLS):
            # The log grows with every step: wait for some, so that there is progress between kills, then strike.
            lines, pause = generator.randint(1, 8), generator.random() * 0.05
            end, said = lives.train(
                model, STEPS, killed={"log": str(model / "log.jsonl"), "lines": lines, "pause": pause}
            )
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


def wait_for_lines(log: Path, lines: int, process: subprocess.Popen[bytes]) -> None:
    """Until a log has grown by so many lines, or its writer has ended."""
    start = log.stat().st_size if log.exists() else 0
    while process.poll() is None:
        if log.exists() and log.stat().st_size > start:
            with log.open("rb") as file:
                file.seek(start)
                if file.read().count(b"\n") >= lines:
                    return
        time.sleep(0.01)


@pytest.mark.skipif(os.name == "nt", reason="sends POSIX signals")
@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_polite_stop_saves_first_and_the_same_command_goes_on(corpus: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        command(corpus, corpus / "model", steps=30),
        env=ENVIRONMENT,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    wait_for_lines(corpus / "model" / "log.jsonl", 10, process)  # type: ignore[arg-type]
    process.send_signal(number)
    output, _ = process.communicate(timeout=60)
    assert "stopped; run the same command to go on" in output
    assert checkpoint_steps(corpus / "model")
    assert not (corpus / "model" / "config.json").exists()
    again = subprocess.run(
        command(corpus, corpus / "model", steps=30), env=ENVIRONMENT, capture_output=True, text=True, check=False
    )
    assert again.returncode == 0
    assert "Going on from step" in again.stdout
    assert "Finished at step 30" in again.stdout
    assert (corpus / "model" / "config.json").exists()
