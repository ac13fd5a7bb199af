"""The experiment runner on a toy corpus, through its command line: killed, continued, reported."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import sacrebleu

import quality
from experiment.progress import has_gone_beyond
from transduce.training.recipe import Budget

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "quality.py"
GRID = """
corpus: [train.src, train.tgt]
pairs: 200
dev: [dev.src, dev.tgt]
test: [test.src, test.tgt]
recipe: small-corpus
settings: [
  model.encoder_layers=1, model.decoder_layers=1, model.d_model=32, model.d_ff=64, tokenizer.vocab_size=300,
  training.batch_tokens=256, training.warmup=20, training.average_decay=0.9,
  training.validate_every=80, training.checkpoint_every=20]
variants:
  base:
  no dropout: model.dropout=0
budget: {steps: 160}
measure: {beam: 1, tokenize: none}
"""


def started(folder: Path) -> subprocess.Popen[str]:
    command = [sys.executable, str(SCRIPT), "grid.yaml", "-o", "out", "--jobs", "2"]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "PYTHONUTF8": "1"}
    return subprocess.Popen(
        command, cwd=folder, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, encoding="utf-8"
    )


def said(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate()
    assert process.returncode == 0, output + errors
    return output


def events(folder: Path, run: str) -> list[dict[str, Any]]:
    log = folder / "out" / "runs" / run / "log.jsonl"
    lines = log.read_text(encoding="utf-8").splitlines() if log.is_file() else []
    return [json.loads(line) for line in lines if line.endswith("}")]


def wait_until(holds: Callable[[], bool], seconds: float = 300) -> None:
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it does not come to pass"
        time.sleep(0.02)


@pytest.fixture(scope="module")
def experiment(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two variants, whose runner is killed once one of them has saved something, and is then started again."""
    folder = tmp_path_factory.mktemp("experiment")
    generator = random.Random(1)
    for name, count in (("train", 300), ("dev", 30), ("test", 30)):
        rows = [[generator.choice("0123456789") for _ in range(generator.randint(3, 6))] for _ in range(count)]
        (folder / f"{name}.src").write_text("".join(" ".join(row) + "\n" for row in rows))
        (folder / f"{name}.tgt").write_text("".join(" ".join(reversed(row)) + "\n" for row in rows))
    (folder / "grid.yaml").write_text(GRID, encoding="utf-8")
    first = started(folder)
    names = ("base-1", "no-dropout-1")
    wait_until(lambda: any(event["event"] == "Saved" for name in names for event in events(folder, name)))
    first.kill()
    first.communicate()
    saved = [name for name in names if any(event["event"] == "Saved" for event in events(folder, name))]
    (folder / "saved").write_text(" ".join(saved), encoding="utf-8")
    assert not (folder / "out" / "results.jsonl").exists()
    (folder / "second").write_text(said(started(folder)), encoding="utf-8")
    return folder


def test_a_killed_experiment_goes_on_where_it_was(experiment: Path) -> None:
    output = (experiment / "second").read_text(encoding="utf-8")
    saved = (experiment / "saved").read_text(encoding="utf-8").split()
    assert saved
    for name in ("base-1", "no-dropout-1"):
        assert name not in saved or f"{name}: goes on" in output
        found = [event for event in events(experiment, name) if event["event"] in ("Started", "Resumed", "Finished")]
        begun = [event["event"] for event in found if event["event"] != "Finished"]
        assert begun == ["Started", "Resumed"] or (name not in saved and set(begun) == {"Started"})
        assert found[-1] == found[-1] | {"event": "Finished", "step": 160, "complete": True}


def test_every_run_has_a_row_with_what_made_it(experiment: Path) -> None:
    lines = (experiment / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()
    rows = {row["variant"]: row for row in map(json.loads, lines)}
    assert len(lines) == len(rows) == 2
    assert [rows[name]["overrides"] for name in ("base", "no dropout")] == [[], ["model.dropout=0"]]
    for row in rows.values():
        assert row["steps"] == 160
        assert row["seed"] == 1
        assert 0 < row["cpu_minutes"] < 10
        assert "tok:none" in row["signature"]["bleu"]
        assert row["commit"]


def test_scores_are_those_of_the_translations_that_are_kept(experiment: Path) -> None:
    rows = [json.loads(line) for line in (experiment / "out" / "results.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        for split in ("dev", "test"):
            name = f"{row['variant'].replace(' ', '-')}-1.{split}.txt"
            written = (experiment / "out" / "translations" / name).read_text(encoding="utf-8").splitlines()
            references = (experiment / f"{split}.tgt").read_text(encoding="utf-8").splitlines()
            bleu = sacrebleu.corpus_bleu(written, [references], tokenize="none", force=True).score
            chrf = sacrebleu.corpus_chrf(written, [references]).score
            assert row[split] == pytest.approx({"bleu": bleu, "chrf": chrf})


def test_what_was_trained_for_longer_is_not_taken_for_a_shorter_run(experiment: Path) -> None:
    log = experiment / "out" / "runs" / "base-1" / "log.jsonl"
    assert has_gone_beyond(log, Budget(steps=159))
    assert has_gone_beyond(log, Budget(epochs=1))
    assert not has_gone_beyond(log, Budget(steps=160))
    assert not has_gone_beyond(log, Budget(minutes=30))
    assert not has_gone_beyond(log.with_name("none"), Budget(steps=1))


def test_what_is_complete_is_not_run_again(experiment: Path) -> None:
    before = {name: len(events(experiment, name)) for name in ("base-1", "no-dropout-1")}
    output = said(started(experiment))
    assert "2 runs, 2 of them complete" in output
    assert {name: len(events(experiment, name)) for name in before} == before
    assert len((experiment / "out" / "results.jsonl").read_text(encoding="utf-8").splitlines()) == 2


def test_the_report_can_be_had_at_any_time(experiment: Path, capsys: pytest.CaptureFixture[str]) -> None:
    where = ["-o", str(experiment / "out"), "--data", str(experiment)]
    assert quality.main([str(experiment / "grid.yaml"), *where, "--report"]) == 0
    output = capsys.readouterr().out
    table = [line.split(" | ") for line in output.splitlines() if line.startswith("| ")]
    assert [row[0] for row in table] == ["| variant", "| base", "| no dropout (`model.dropout=0`)"]
    assert table[2][-1].startswith(("0 of 1", "1 better of 1", "1 worse of 1"))
    assert (experiment / "out" / "report.md").read_text(encoding="utf-8").strip() in output
    page = (experiment / "out" / "report.html").read_text(encoding="utf-8")
    data = json.loads(page.split('id="data">')[1].split("</script>")[0])
    assert [variant["name"] for variant in data] == ["base", "no dropout"]
    for variant in data:
        assert [point["step"] for point in variant["runs"][0]["points"]] == [80, 160]


def test_it_trains_on_so_many_pairs_of_the_corpus_as_asked_for(experiment: Path) -> None:
    part = (experiment / "out" / "corpus" / "train-200.src").read_text().splitlines()
    assert len(part) == 200
    assert set(part) <= set((experiment / "train.src").read_text().splitlines())


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (("model.dropout=0", "model.droput=0"), "Did you mean 'dropout'?"),
        (("measure:", "mesure:"), "Did you mean 'measure'?"),
        (("beam: 1", "beams: 1"), "Did you mean 'beam'?"),
        (("budget: {steps: 160}", "budget: {}"), "the budget is empty"),
        (("dev: [dev.src, dev.tgt]\n", ""), "the files to measure on are missing"),
        (("pairs: 200", "pairs: 2000"), "the corpus has 300 pairs, not 2,000"),
        (("test.src", "text.src"), "no such file"),
        (("no dropout:", "BASE:"), "would share a directory"),
        (("recipe: small-corpus\n", ""), "'recipe' is missing"),
    ],
    ids=["setting", "key", "measure", "budget", "dev", "pairs", "file", "names", "recipe"],
)
def test_mistakes_in_a_grid_are_answered_before_anything_runs(
    change: tuple[str, str], message: str, experiment: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    grid = tmp_path / "grid.yaml"
    assert change[0] in GRID
    grid.write_text(GRID.replace(*change), encoding="utf-8")
    code = quality.main([str(grid), "-o", str(tmp_path / "out"), "--data", str(experiment)])
    assert code == 2
    assert message in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
