"""`transduce attention` as a user meets it."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from transduce.bundle import Bundle, find_model
from transduce.cli.main import main

TEXT = "Where is the station?"
Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Run:
    """The command in an empty directory: exit code, output, errors."""
    monkeypatch.chdir(tmp_path)

    def run(*arguments: str) -> tuple[object, str, str]:
        monkeypatch.setattr(sys, "argv", ["transduce", "attention", *arguments])
        with pytest.raises(SystemExit) as stopped:
            main()
        output = capsys.readouterr()
        return stopped.value.code, output.out, output.err

    return run


def test_it_shows_words_with_probabilities_and_writes_a_page(run: Run, tmp_path: Path) -> None:
    code, out, error = run("en-de", TEXT, "--layer", "3", "--head", "2")
    assert code == 0, error
    lines = [line.split() for line in out.splitlines()]
    assert lines[0] == ["Wo", "ist", "der", "Bahnhof?"]
    (row,) = [line for line in lines if line[:1] == ["Bahnhof?"]]
    assert row[2] == "station?"
    assert row[1].endswith("%")
    assert out.endswith("Wrote attention.html: open it in a browser.\n")
    page = (tmp_path / "attention.html").read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert '"layer":3,"heads":[2]' in page
    assert [path.name for path in tmp_path.iterdir()] == ["attention.html"]


def test_a_translation_of_one_s_own_as_a_picture(run: Run, tmp_path: Path) -> None:
    code, out, error = run(
        "en-de", TEXT, "--target", "Wo steht der Zug?", "-o", "zug.png", "--kind", "decoder", "--subwords"
    )
    assert code == 0, error
    assert out.startswith("Wo steht der Zug?\n")
    assert (tmp_path / "zug.png").read_bytes().startswith(b"\x89PNG")
    assert [path.name for path in tmp_path.iterdir()] == ["zug.png"]


def test_json_is_all_that_is_printed(run: Run, tmp_path: Path) -> None:
    code, out, error = run("en-de", TEXT, "--json", "--beam", "1")
    assert (code, error) == (0, "")
    found = json.loads(out)
    assert found["target"]["text"] == "Wo ist der Bahnhof?"
    shape = Bundle.open(find_model("en-de")).config.architecture
    assert found["maps"]["cross"]["shape"][:2] == [shape["decoder_layers"], shape["heads"]]
    assert len(found["maps"]["cross"]["numbers"]) == shape["decoder_layers"]
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["en-de", ""], "there is no text to look at. Give a sentence."),
        (["en-de", TEXT, "--layer", "7"], "there is no layer 7: layers are counted from 1 to 3. Did you mean 3?"),
        (["en-de", TEXT, "--head", "0"], "there is no head 0: heads are counted from 1 to 4. Did you mean 1?"),
        (
            ["en-de", TEXT, "--target", "de"],
            "--target is the text of a translation, and 'de' is a language. Use --to de.",
        ),
        (["en-de", TEXT, "--to", "fr"], "the model does not translate into 'fr'. Valid: de."),
        (["en-de", TEXT, "-o", "lens.htlm"], "neither a page nor a picture. Did you mean '.html'?"),
        (["en-de", TEXT, "-o", "nowhere/lens.html"], "nowhere: the directory does not exist."),
        (["en-dee", TEXT], "Did you mean 'en-de'?"),
        (["en-de", "We " * 600], "tokens; the lens shows up to 512. Give one sentence, or a part of it."),
    ],
)
def test_a_mistake_is_answered_in_words_and_nothing_is_written(
    run: Run, tmp_path: Path, arguments: list[str], message: str
) -> None:
    code, out, error = run(*arguments)
    assert (code, out) == (2, "")
    assert message in " ".join(error.split())
    assert "Traceback" not in error
    assert list(tmp_path.iterdir()) == []
