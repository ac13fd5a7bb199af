"""`transduce models` lists what there is; `translate` finds a model by languages; mistakes are told in words."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from transduce.bundle import builtin_folder, builtin_models

TRANSLATED = "I am tired."


def run(*arguments: str, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "transduce", *arguments],
        cwd=cwd, capture_output=True, text=True, encoding="utf-8", check=False, env={**os.environ, "COLUMNS": "120"},
    )  # fmt: skip


def test_models_are_listed_with_languages_scores_size_and_licence(tmp_path: Path) -> None:
    shutil.copytree(builtin_folder() / "en-de", tmp_path / "models" / "mine")
    (tmp_path / "models" / "broken").mkdir()
    (tmp_path / "models" / "broken" / "config.json").write_text("{")
    result = run("models", "models", cwd=tmp_path)
    assert result.returncode == 0, result.stderr
    rows = {line.split()[0]: line for line in result.stdout.splitlines()[2:]}
    assert list(rows) == [*builtin_models(), str(Path("models", "mine"))]
    scores = json.loads((builtin_folder() / "en-de" / "scores.json").read_text(encoding="utf-8"))["test"]
    assert "English → German" in rows["en-de"]
    assert f"BLEU {scores['bleu']:.1f}, chrF {scores['chrf']:.1f}" in rows["en-de"]
    assert "not a model's description" in result.stderr  # and the others are listed all the same


def test_models_are_listed_for_scripts_without_torch() -> None:
    code = (
        "import sys; from transduce.cli.main import main\n"
        "sys.argv = ['transduce', 'models', '--json']\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'ctranslate2', 'sentencepiece'} & set(sys.modules)), file=sys.stderr)\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    assert result.stderr.strip() == "[]"
    listed = json.loads(result.stdout)
    assert [each["name"] for each in listed] == builtin_models()
    assert all(each["builtin"] and each["scores"]["bleu"] > 0 and each["megabytes"] <= 12 for each in listed)


def test_languages_choose_the_model() -> None:
    by_name = run("translate", "-m", "en-de", TRANSLATED)
    assert by_name.stdout == "Ich bin müde.\n"
    for languages in (["--from", "en", "--to", "de"], ["--to", "german"], ["-m", "en-de", "--from", "eng"]):
        assert run("translate", *languages, TRANSLATED).stdout == by_name.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (
            ["--from", "en", "--to", "deutsch"],
            "no built-in model translates from en into deutsch. Did you mean 'en-de'",
        ),
        (["-m", "en-de", "--from", "fr"], "--from fr does not fit: the model translates from en. Leave out --from, or"),
        (["-m", "en-de", "--to", "fr"], "the model does not translate into 'fr'. Valid: de."),
    ],
)
def test_languages_that_do_not_fit_are_told(arguments: list[str], message: str) -> None:
    result = run("translate", *arguments, TRANSLATED)
    assert (result.returncode, result.stdout) == (2, "")
    assert message in result.stderr
    assert "Traceback" not in result.stderr


def test_a_directory_of_the_same_name_is_not_mixed_up_with_a_built_in_model(tmp_path: Path) -> None:
    shutil.copytree(builtin_folder() / "en-de", tmp_path / "en-de")
    result = run("translate", "-m", "en-de", TRANSLATED, cwd=tmp_path)
    assert result.returncode == 2
    assert f"Write {Path('.')}" in result.stderr
    assert run("translate", TRANSLATED, cwd=tmp_path).returncode == 0  # what is used where none is named has no rival
    for command in (["translate", "-m", "./en-de", TRANSLATED], ["evaluate", "./en-de", "t.en", "t.de"]):
        (tmp_path / "t.en").write_text(f"{TRANSLATED}\n" * 3)
        (tmp_path / "t.de").write_text("Ich bin müde.\n" * 3, encoding="utf-8")
        result = run(*command, cwd=tmp_path)
        assert result.returncode == 0, result.stderr


def test_references_of_a_model_that_writes_twi_are_read_by_its_rules(tmp_path: Path) -> None:
    shutil.copytree(builtin_folder() / "en-de", tmp_path / "model")
    (tmp_path / "t.tsv").write_text(f"{TRANSLATED}\tIch bin müdε.\nHello.\tHallo.\n", encoding="utf-8")
    plain = run("evaluate", "model", "t.tsv", "--json", cwd=tmp_path)
    assert "signs that look like" not in plain.stderr
    path = tmp_path / "model" / "config.json"
    path.write_text(path.read_text(encoding="utf-8").replace('"nfc-1"', '"nfc-1+target:ɔɛ"'), encoding="utf-8")
    result = run("evaluate", "model", "t.tsv", "--json", cwd=tmp_path)
    assert "In 1 references, signs that look like ɔ or ɛ are taken for it." in result.stderr
    assert json.loads(result.stdout)["sentences"] == 2
