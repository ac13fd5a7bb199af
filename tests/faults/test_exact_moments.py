"""A run that is killed in the middle of a save, or that meets a full disk, loses nothing."""

from __future__ import annotations

import os
import random
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator
from tests.faults.conftest import Lives, opened

from transduce.bundle import Bundle
from transduce.training.checkpoint import CheckpointStore

pytestmark = pytest.mark.skipif(os.name == "nt", reason="forks, signals and limits are POSIX")

SETTINGS = [
    "model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=32", "model.d_ff=64", "model.dropout=0.2",
    "tokenizer.vocab_size=300", "training.batch_tokens=256", "training.average=best", "training.average_count=2",
    "training.checkpoint_every=4", "training.validate_every=10", "training.warmup=20", "training.metric=loss",
    "training.cooldown=0",  # so that a run of 20 steps is the beginning of one of 40
]  # fmt: skip
FILES = ("model.safetensors", "tokenizer.model", "config.json", "scores.json")


@pytest.fixture(scope="module")
def corpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("corpus")
    generator = random.Random(3)
    words = [[generator.choice("abcdefghij") * generator.randint(1, 3) for _ in range(6)] for _ in range(1000)]
    for name, lines in (("train", words[8:]), ("dev", words[:8])):
        (folder / f"{name}.src").write_text("".join(" ".join(each) + "\n" for each in lines))
        (folder / f"{name}.tgt").write_text("".join(" ".join(each[::-1]) + "\n" for each in lines))
    return folder


@pytest.fixture(scope="module")
def lives(corpus: Path) -> Iterator[Lives]:
    dev = ["--dev-source", str(corpus / "dev.src"), "--dev-target", str(corpus / "dev.tgt")]
    with opened([str(corpus / "train.src"), str(corpus / "train.tgt"), *dev, *SETTINGS], threads=1) as lives:
        yield lives


@pytest.fixture(scope="module")
def whole(corpus: Path, lives: Lives) -> Path:
    """A run of 40 steps that nothing has disturbed."""
    assert "mean of steps" in lives.finish(corpus / "whole", 40)
    return corpus / "whole"


def contents(model: Path) -> dict[str, bytes]:
    return {name: (model / name).read_bytes() for name in FILES}


# Kills

KILLS: list[dict[str, Any]] = [
    {"event": "os.mkdir", "text": "checkpoints/.writing-step-4"},
    {"event": "os.mkdir", "text": "checkpoints/.writing-step-4", "do": "in a write", "limit": 30_000},
    {"event": "open", "text": "checkpoints/.writing-step-8/state.json"},
    {"event": "open", "text": "checkpoints/.writing-step-8/state.json", "do": "in a write", "limit": 100},
    {"event": "os.mkdir", "text": "best/.writing-step-10", "do": "in a write", "limit": 30_000},
    {"event": "os.rename", "text": "best/.writing-step-10"},
    {"event": "os.rename", "text": "snapshots/.writing-step-10"},
    {"event": "os.rename", "text": "checkpoints/.writing-step-12"},
    {"event": "open", "text": "run/checkpoints"},  # to sync it, after a rename
    {"event": "os.rename", "text": "checkpoints/.removed-step-8"},
    {"event": "shutil.rmtree", "text": "checkpoints/.removed-step-12"},
    {"event": "shutil.rmtree", "text": "snapshots/.removed-step-10"},
    {"event": "os.rename", "text": "snapshots/.writing-step-40"},
    {"event": "os.mkdir", "text": "mean/.writing-step-40", "do": "in a write", "limit": 30_000},
    {"event": "os.rename", "text": "mean/.writing-step-40"},
    {"event": "os.mkdir", "text": "checkpoints/.writing-step-40"},
    {"event": "open", "text": ".model.safetensors.part", "do": "in a write", "limit": 3_000},
    {"event": "os.rename", "text": "model.safetensors"},
]


def test_a_kill_at_the_worst_moments_changes_nothing(lives: Lives, whole: Path) -> None:
    model = whole.with_name("killed")
    for kill in KILLS:
        end, said = lives.train(model, 40, {"do": "kill"} | kill)
        assert end < 0, f"{kill} did not come to pass: {end} {said}"
    lives.finish(model, 40)
    assert contents(model) == contents(whole)
    assert list((model / "run").rglob(".*")) == []
    assert curves(model) == curves(whole)


def curves(model: Path) -> dict[str, Any]:
    """What TensorBoard and the page show, without times."""
    board = EventAccumulator(str(model / "run" / "tensorboard")).Reload()  # type: ignore[no-untyped-call]
    names = ("training/loss", "training/rate", "dev/loss")
    shown = {name: [(point.step, point.value) for point in board.Scalars(name)] for name in names}
    page = re.sub(r"[\d.]+ minutes|<(title|h1)>.*?</\1>", "", (model / "training.html").read_text(encoding="utf-8"))
    return shown | {"page": page}


# Full disks

FULL: dict[str, dict[str, Any]] = {
    "corpus": {"event": "open", "text": "prepared/train/source.ids", "limit": 1000},
    "recipe": {"event": "open", "text": ".recipe.yaml.part"},
    "first checkpoint": {"event": "os.mkdir", "text": "checkpoints/.writing-step-4", "limit": 30_000},
    "checkpoint": {"event": "os.mkdir", "text": "checkpoints/.writing-step-16", "limit": 30_000},
    "its description": {"event": "open", "text": "checkpoints/.writing-step-24/state.json", "limit": 10},
    "best": {"event": "os.mkdir", "text": "best/.writing-step-30", "limit": 1000},
    "mean": {"event": "os.mkdir", "text": "mean/.writing-step-40", "limit": 1000},
    "page": {"event": "open", "text": ".training.html.part", "limit": 1000},
    "model": {"event": "open", "text": ".model.safetensors.part", "limit": 1000},
    "compiled": {"event": "open", "text": ".ctranslate2.part/model.bin", "limit": 1000},
}


def said_in_words(end: tuple[int, str]) -> str:
    code, said = end
    assert code == 2, said
    assert "Traceback" not in said
    assert "Exception" not in said
    message = " ".join(said[said.index("transduce: ") :].split())
    assert "run the same command: it goes on where it was" in message
    return message


def test_a_full_disk_is_said_in_words_and_the_same_command_goes_on(lives: Lives, whole: Path) -> None:
    model = whole.with_name("full")
    # Where each goes on: at the newest checkpoint before the one that the disk had no room for.
    resumed = {"its description": 12, "best": 20, "mean": 28, "page": 40, "model": 40, "compiled": 40}
    for name, moment in FULL.items():
        end = lives.train(model, 40, {"do": "full"} | moment)
        message = said_in_words(end)
        assert "a file would be larger than the system allows. Free some space" in message, name
        assert f"{model}" in message, name
        assert ("Going on from step" in end[1]) == (name in resumed), name
        assert name not in resumed or f"Going on from step {resumed[name]}" in end[1]
    lives.finish(model, 40)
    assert contents(model) == contents(whole)


def test_checkpoints_and_model_of_before_stay_whole(lives: Lives, whole: Path) -> None:
    model = whole.with_name("longer")
    lives.finish(model, 20)
    before = contents(model)
    compiled = (model / "ctranslate2" / "model.bin").read_bytes()
    said_in_words(lives.train(model, 40, {"do": "full"} | FULL["its description"]))
    store = CheckpointStore(model / "run" / "checkpoints")
    assert [store.load(step) is not None for step in (16, 20, 24)] == [True, True, False]
    assert not list(store.directory.glob(".*"))  # half a checkpoint would fill the disk further
    said_in_words(lives.train(model, 40, {"do": "full"} | FULL["model"]))
    assert contents(model) == before
    assert (model / "ctranslate2" / "model.bin").read_bytes() == compiled
    Bundle.open(model).model()
    lives.finish(model, 40)
    assert contents(model) == contents(whole)


def test_a_log_that_cannot_grow_is_said_in_words_too(lives: Lives, whole: Path) -> None:
    model = whole.with_name("log")
    model.mkdir()
    size = 1_000_000  # larger than any other file, so that the limit meets the log alone
    (model / "log.jsonl").write_text("x" * size + "\n")
    end = lives.train(model, 40, limit=size + 2000)
    assert "a file would be larger than the system allows" in said_in_words(end)
    lives.finish(model, 40)
    assert contents(model) == contents(whole)


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)]
    try:
        made = subprocess.run(mount, capture_output=True, text=True, check=False)
    except OSError as error:
        pytest.skip(f"no small disk can be made here: {error}")
    if made.returncode:
        pytest.skip(f"no small disk can be made here: {made.stderr.strip()}")
    try:
        yield disk
    finally:
        subprocess.run(["umount", "-l", str(disk)], check=True)


def test_a_disk_that_is_really_full(lives: Lives, whole: Path, small_disk: Path) -> None:
    model = small_disk / "model"
    assert "the disk is full. Free some space and run the same command" in said_in_words(lives.train(model, 40))
    subprocess.run(["mount", "-o", "remount,size=50m", str(small_disk)], check=True)
    lives.finish(model, 40)
    assert contents(model) == contents(whole)
