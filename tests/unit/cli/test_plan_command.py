"""`transduce plan` as a user meets it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from transduce.cli.main import app
from transduce.errors import TransduceError

TINY = ["model.encoder_layers=1", "model.decoder_layers=1", "model.d_model=16", "model.d_ff=16", "model.heads=2"]
TINY += ["tokenizer.vocab_size=300", "training.batch_tokens=64"]


def planned(*arguments: str) -> str:
    result = CliRunner(env={"COLUMNS": "120"}).invoke(app, ["plan", *arguments], catch_exceptions=False)
    assert result.exit_code == 0
    return result.stdout


def test_the_papers_base_model_on_its_eight_gpus() -> None:
    shown = planned("paper-base", "--device", "p100", "--devices", "8", "--pairs", "4500000")
    assert re.search(r"parameters\s+63,045,632", shown)
    assert re.search(r"all steps\s+100,000: .* the corpus 20 times", shown)
    assert re.search(r"in all\s+[\d.]+ GB\s+It fits: [\d.]+ GB of 16\.0 GB", shown)
    assert "of which training reaches 42%" in shown  # what is assumed is said
    assert "untested on a GPU" in shown


def test_what_does_not_fit_says_what_to_change() -> None:
    shown = planned("paper-big", "--device", "p100")
    assert "It does not fit" in shown
    assert re.search(r"training\.batch_tokens=\d+ training\.accumulate=\d+  → [\d.]+ GB", shown)
    assert "--devices" in shown
    assert "It fits" in planned("paper-big", "--device", "p100", "--memory", "80 GB")


@pytest.mark.parametrize("recipe", ["small-corpus", "language-model", "masked-language-model", "classification",
                                    "tagging", "image-classification", "span-corruption"])  # fmt: skip
def test_the_speed_is_measured_by_training_and_no_file_is_written(
    recipe: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    smaller = {"image-classification": ["model.patch=14"], "language-model": ["objective.context=16"]}
    settings = TINY + smaller.get(recipe, [])
    told = json.loads(planned(recipe, *settings, "--steps", "50", "--seconds", "1", "--tokens-per-pair", "8", "--json"))
    measured = told["measured"]
    assert measured["steps"] >= 1  # more, unless the machine is very busy
    assert measured["seconds"] > measured["update_seconds"] > 0
    assert told["hours"] == pytest.approx(50 * told["seconds_per_step"] / 3600)
    assert measured["tokens"] > 0
    assert told["memory"]["total"] == pytest.approx(sum(v for k, v in told["memory"].items() if k != "total"))
    assert os.listdir(tmp_path) == []


def test_a_given_speed_is_not_measured() -> None:
    told = json.loads(planned("small-corpus", "--tokens-per-second", "1000", "--steps", "7", "--json"))
    assert told["measured"] is None
    assert told["tokens_per_second"] == pytest.approx(1000)
    assert told["hours"] == pytest.approx(7 * told["tokens_per_step"] / 1000 / 3600)
    assert told["kilowatt_hours"] == pytest.approx(told["hours"] * 0.045)


def test_a_recipe_of_ones_own(tmp_path: Path) -> None:
    (tmp_path / "mine.yaml").write_text("model: {d_model: 64, heads: 4}\nbudget: {steps: 3}\n")
    assert re.search(r"all steps\s+3: ", planned(str(tmp_path / "mine.yaml"), "--no-measure"))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["paper-bas"], r"no recipe 'paper-bas'\. Did you mean 'paper-base'\?"),
        (["paper-base", "model.d_modle=3"], r"'d_modle' is not a setting.* Did you mean 'd_model'\?"),
        (["paper-base", "--memory", "much"], r"--memory much is no amount of memory\. Write it as 24GB"),
        (["paper-base", "--memory", "0GB"], r"--memory 0GB is no amount"),
        (["paper-base", "--bandwidth", "fast"], r"--bandwidth fast is no amount"),
        (["paper-base", "--device", "p10"], r"--device p10 is not known\. Did you mean 'p100'\?"),
        (["paper-base", "--tokens-per-pair", "1,2,3"], r"--tokens-per-pair 1,2,3 is no mean length"),
        (["paper-base", "--tokens-per-pair", "nan"], r"--tokens-per-pair nan is no mean length"),
        (["recurrent"], "recurrent networks are not planned"),
        (["small-corpus", "budget.minutes=null", "--no-measure"], r"says nothing of when to stop.* Give --steps"),
    ],
)
def test_mistakes_are_answered_in_words(arguments: list[str], message: str) -> None:
    with pytest.raises(TransduceError, match=message):
        CliRunner().invoke(app, ["plan", *arguments], catch_exceptions=False)


def test_a_mistake_ends_with_exit_code_2_and_no_traceback() -> None:
    command = [sys.executable, "-m", "transduce", "plan", "paper-base", "--memory", "24 parrots"]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=False)
    assert result.returncode == 2
    assert result.stderr.startswith("transduce: --memory 24 parrots is no amount of memory.")
    assert "Traceback" not in result.stderr
