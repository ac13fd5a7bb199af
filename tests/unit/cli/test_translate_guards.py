"""`transduce translate` with what must survive, glossaries and warnings, as a user meets it."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from transduce.bundle import find_model

ADDRESS = "https://example.com/a?b=1"


def translate(*arguments: str, given: str | None = None) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "transduce", "translate", *arguments]
    return subprocess.run(command, input=given, capture_output=True, text=True, encoding="utf-8", check=False)


def test_warnings_go_to_stderr_with_the_line_and_json_has_them_all() -> None:
    lines = ["Good night.", *[f"I saw {ADDRESS} {number} times yesterday." for number in range(20, 32)]]
    result = translate("--json", given="\n".join(lines))
    assert result.returncode == 0, result.stderr
    entries = [json.loads(line) for line in result.stdout.splitlines()]
    assert [entry["source"] for entry in entries] == lines
    assert all(ADDRESS in entry["translation"] for entry in entries[1:])
    warned = [number for number, entry in enumerate(entries, start=1) if entry["warnings"]]
    assert 1 not in warned
    said = result.stderr.splitlines()
    assert [line.split(":")[1] for line in said[:10]] == [f" line {number}" for number in warned[:10]]
    assert len(said) == min(len(warned), 11)


def test_a_glossary_file(tmp_path: Path) -> None:
    path = tmp_path / "terms.tsv"
    path.write_text("# ours\nbank account\tGirokonto\n", encoding="utf-8")
    result = translate("--glossary", str(path), "My bank account is empty.")
    assert result.returncode == 0, result.stderr
    assert "Girokonto" in result.stdout


@pytest.mark.parametrize(
    ("terms", "arguments", "words"),
    [
        ("dog Hund\n", [], "terms.tsv:1: a line of a glossary has two columns, this one 1."),
        (None, [], "terms.tsv"),
        ("dog\tHund\n", ["--raw"], "--raw leaves no room for a glossary."),
    ],
)
def test_mistakes_are_answered_in_words(tmp_path: Path, terms: str | None, arguments: list[str], words: str) -> None:
    path = tmp_path / "terms.tsv"
    if terms is not None:
        path.write_text(terms, encoding="utf-8")
    result = translate("--glossary", str(path), *arguments, "Dog.")
    assert (result.returncode, result.stdout) == (2, "")
    assert words in result.stderr
    assert "Traceback" not in result.stderr


def test_noise_needs_no_pytorch() -> None:
    code = (
        "import sys\nfrom transduce import Translator\n"
        "found = Translator.load('en-de').translate(['asdf ' * 60, 'x: 1 2 3 4', 'the ' * 30, 'Ask {name} ❤️ now'])\n"
        "print(any(each.redone for each in found), 'torch' in sys.modules)"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=False)
    assert result.stdout.split() == ["True", "False"], result.stderr


def test_what_it_is_sure_of_is_written_as_pairs(tmp_path: Path) -> None:
    lines = [
        "Where is the station?",
        "",
        "Gizmo\tflarb the wuzzle of snark.",
        f"I saw {ADDRESS} 27 times.",
        "I am hungry.",
    ]
    told = [json.loads(line) for line in translate("--json", given="\n".join(lines)).stdout.splitlines()]
    least = sorted(each["confidence"] for each in told if each["source"])[1]
    expected = [
        (each["source"].replace("\t", " "), each["translation"])
        for each in told
        if each["source"] and each["confidence"] >= least and not each["warnings"]
    ]
    assert 2 <= len(expected) < 4
    output = tmp_path / "sure.tsv"
    result = translate("--sure", str(least), "-o", str(output), given="\n".join(lines))
    assert result.returncode == 0, result.stderr
    assert [tuple(line.split("\t")) for line in output.read_text(encoding="utf-8").splitlines()] == expected
    assert f"{len(expected)} of 4 lines are that sure." in result.stderr


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--sure", "0.5", "--json"], "--sure writes pairs. Leave out --json, --scores and --n-best."),
        (["--sure", "0.5", "-m", "{uncalibrated}"], "transduce calibrate MODEL SOURCE TARGET"),
        (["--sure", "50"], "--sure"),
    ],
)
def test_how_sure_it_is_must_be_known(tmp_path: Path, arguments: list[str], words: str) -> None:
    model = tmp_path / "model"
    shutil.copytree(find_model("en-de"), model)
    config = json.loads((model / "config.json").read_text(encoding="utf-8"))
    assert config.pop("confidence")
    (model / "config.json").write_text(json.dumps(config), encoding="utf-8")
    result = translate(*[each.format(uncalibrated=model) for each in arguments], "Hello.")
    assert (result.returncode, result.stdout) == (2, "")
    assert words in " ".join(result.stderr.split())
    assert "Traceback" not in result.stderr
