"""One run in a process of its own: trained by `transduce train`, then measured."""

from __future__ import annotations

import _thread
import json
import os
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from experiment.grid import Run
from experiment.places import Places, Result
from experiment.progress import has_gone_beyond, last_events
from experiment.texts import Texts
from results.commit import commit
from transduce.storage import write_whole

__all__ = ["STOPPED", "carry_out"]

STOPPED = 75
"""The exit code of a run that can go on."""
TICK = 2.0
"""Seconds between notes of the CPU time."""


def carry_out(run: Run, texts: Texts, places: Places) -> int:
    """Train and measure, and note the result; the exit code of the process."""
    threading.Thread(target=_stop_without_runner, daemon=True).start()
    try:
        with places.only_one(run):
            if has_gone_beyond(places.events(run), run.recipe.budget):
                print("It was trained for longer than that before: give another directory with -o.", flush=True)
                return 2
            with _counted(places.note(run, "seconds")):
                code = _trained(run, texts, places.model(run))
            if code:
                return code
            last = last_events(places.events(run))
            if not (last and last[-1]["event"] == "Finished" and last[-1]["complete"]):
                return STOPPED
            result = _measured(run, texts, places)
            write_whole(places.note(run, "json"), json.dumps(result, ensure_ascii=False).encode())
            return 0
    except KeyboardInterrupt:
        return STOPPED


def train_arguments(run: Run, texts: Texts, model: Path) -> list[str]:
    """The command line of the run."""
    train, dev = texts.train, texts.measured["dev"]
    languages = ["--languages", run.grid.languages] if run.grid.languages else []
    return [
        *("train", str(train.source), str(train.target), "-o", str(model), "--recipe", run.grid.recipe),
        *("--dev-source", str(dev.source), "--dev-target", str(dev.target), *languages, *run.overrides),
    ]


def _trained(run: Run, texts: Texts, model: Path) -> int:
    from transduce.cli.main import main

    sys.argv = ["transduce", *train_arguments(run, texts, model)]
    print(" ".join(sys.argv), flush=True)
    try:
        main()
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _measured(run: Run, texts: Texts, places: Places) -> Result:
    """What is known of a complete run, with scores by one and the same code for all."""
    from transduce.evaluation import evaluate
    from transduce.training.log import read_log
    from transduce.translator import Translator

    how = run.grid.measure
    translator = Translator.load(places.model(run), how.engine)
    events = read_log(places.events(run))
    steps = [event for event in events if event["event"] == "Stepped"]
    result: Result = {
        "variant": run.variant,
        "overrides": list(run.settings),
        "seed": run.seed,
        "commit": commit(),
        "minutes": round(steps[-1]["seconds"] / 60, 3),
        "cpu_minutes": round(_seconds(places.note(run, "seconds")) / 60, 3),
        "steps": steps[-1]["step"],
        "ended": events[-1]["reason"],
    }
    signatures: dict[str, Any] = {}
    for split, corpus in texts.measured.items():
        pairs = list(corpus.pairs(allow_identical=True))
        found = translator.translate([pair.source for pair in pairs], beam=how.beam, alpha=how.alpha)
        written = [each.text for each in found]
        write_whole(places.translations(run, split), "".join(f"{text}\n" for text in written).encode())
        scores = evaluate(
            written,
            [pair.target for pair in pairs],
            metrics=("bleu", "chrf"),
            intervals=False,
            tokenize=how.tokenize,
            lowercase=how.lowercase,
        )
        result[split] = {"bleu": scores.bleu, "chrf": scores.chrf}
        signatures = {metric: score.signature for metric, score in scores.scores.items()}
    decoding = f"beam {how.beam}, α {how.alpha:g}, {type(translator.engine).__name__}"
    return result | {"decoding": decoding, "signature": signatures, "fingerprint": run.fingerprint}


def _stop_without_runner() -> None:
    """The runner holds the other end of standard input: once that is closed, be it by a kill, save and stop."""
    with suppress(OSError):
        while os.read(0, 1):
            pass
    _thread.interrupt_main()


@contextmanager
def _counted(path: Path) -> Iterator[None]:
    """Adds this process's CPU time to what its forerunners have noted, now and then and at the end."""
    before, over = _seconds(path), threading.Event()

    def note() -> None:
        write_whole(path, f"{before + time.process_time():.2f}\n".encode())

    def notes() -> None:
        while not over.wait(TICK):
            note()

    thread = threading.Thread(target=notes, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
        note()


def _seconds(path: Path) -> float:
    try:
        return float(path.read_text())
    except (OSError, ValueError):
        return 0.0
