"""The models that come with transduce: they answer at once, are small, and score what their cards say."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from transduce import Translator
from transduce.bundle import Bundle, builtin_models, find_model
from transduce.data.builtin import builtin_corpus
from transduce.evaluation import quick_bleu
from transduce.text import Normalisation
from transduce.training.recipe import Recipe

MEGABYTE = 1_000_000


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load("en-de")


def test_the_first_command_answers_without_torch() -> None:
    code = (
        "import sys; from transduce.cli.main import main\n"
        "sys.argv = ['transduce', 'translate', 'Where is the station?']\n"
        "try:\n    main()\n"
        "except SystemExit:\n    pass\n"
        "print(sorted({'torch', 'numpy', 'sacrebleu'} & set(sys.modules)))\n"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, encoding="utf-8", check=True)
    translation, modules = result.stdout.splitlines()
    assert translation == "Wo ist der Bahnhof?"
    assert modules == "[]"


def test_a_file_is_translated_block_by_block_in_its_order(translator: Translator, tmp_path: Path) -> None:
    lines = [pair.source for pair in builtin_corpus("tatoeba-en-de", "test").pairs()][:150]
    lines[40] = ""
    (tmp_path / "in.txt").write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    command = [sys.executable, "-m", "transduce", "translate", "-i", str(tmp_path / "in.txt")]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    assert result.stdout.splitlines() == [each.text for each in translator.translate(lines)]


def test_it_is_found_by_name(translator: Translator) -> None:
    assert "en-de" in builtin_models()
    assert translator.path == find_model("en-de")
    assert (translator.bundle.config.source_language, translator.bundle.config.target_language) == ("en", "de")


@pytest.mark.parametrize("name", builtin_models())
def test_a_built_in_model_is_small_and_carries_its_history(name: str) -> None:
    folder = find_model(name)
    assert size(folder) <= 12 * MEGABYTE
    Recipe.load(folder / "recipe.yaml")
    events = [json.loads(line) for line in (folder / "log.jsonl").read_text(encoding="utf-8").splitlines()]
    assert {"Stepped", "Validated", "Finished"} <= {event["event"] for event in events}


@pytest.mark.parametrize("name", builtin_models())
def test_a_built_in_model_says_what_it_is_bad_at_and_under_which_terms_it_is(name: str) -> None:
    bundle = Bundle.open(find_model(name))
    card, terms = ((bundle.path / file).read_text(encoding="utf-8") for file in ("README.md", "LICENSE.txt"))
    licence = bundle.config.licence
    assert licence in ("CC BY 2.0", "CC BY-SA 4.0")
    assert licence in card
    assert f"Licence   {licence}, https://creativecommons.org/" in terms
    assert ("Biblica" in card) == ("Biblica" in terms) == (licence == "CC BY-SA 4.0")  # whose text asks for it
    assert "What it is bad at" in card
    assert "tatoeba.org" in card


@pytest.mark.parametrize("name", builtin_models())
def test_a_built_in_model_has_its_scores(name: str) -> None:
    bundle = Bundle.open(find_model(name))
    scores = bundle.scores()
    for split in ("dev", "test"):
        assert scores[split]["sentences"] > 100
        assert "version:" in scores[split]["signature"]["bleu"]
        assert [label for label, _, _ in scores[split]["bleu_by_source_words"]] == ["1-5", "6-10", "11-20", "21+"]
    assert set(scores["joined"]) == {"2", "3"}
    assert scores["training"]["commit"]
    card = " ".join((bundle.path / "README.md").read_text(encoding="utf-8").split())
    assert f"BLEU {scores['test']['bleu']:.1f}, chrF {scores['test']['chrf']:.1f}" in card


@pytest.mark.parametrize("name", builtin_models())
def test_a_built_in_model_is_named_by_its_languages_and_reads_by_their_rules(name: str) -> None:
    config = Bundle.open(find_model(name)).config
    assert name == f"{config.source_language}-{config.target_language}"
    assert config.normalisation == Normalisation.of([config.source_language], [config.target_language]).name


@pytest.mark.parametrize("name", builtin_models())
def test_a_built_in_model_translates_its_cards_examples_without_torch(name: str) -> None:
    card = (find_model(name) / "README.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (.+) \| (.+) \|$", card.split("\n## ")[0], re.MULTILINE)[1:]
    examples = {source: target for source, target in rows if set(source) != {"-"}}
    assert len(examples) >= 3
    code = (
        "import json, sys\n"
        "from transduce import Translator\n"
        f"found = Translator.load({name!r}).translate(json.loads(sys.argv[1]))\n"
        "print(json.dumps([[each.text for each in found], 'torch' in sys.modules]))\n"
    )
    command = [sys.executable, "-c", code, json.dumps(list(examples))]
    result = subprocess.run(command, capture_output=True, text=True, encoding="utf-8", check=True)
    texts, has_torch = json.loads(result.stdout)
    assert not has_torch
    # int8 rounds a little differently from one processor to the next
    assert sum(text == target for text, target in zip(texts, examples.values(), strict=True)) >= len(examples) - 1


def test_all_built_in_models_together_are_small() -> None:
    assert sum(size(find_model(name)) for name in builtin_models()) <= 45 * MEGABYTE


def size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def test_it_scores_what_its_card_says(translator: Translator) -> None:
    scores = json.loads((translator.path / "scores.json").read_text(encoding="utf-8"))
    pairs = list(builtin_corpus("tatoeba-en-de", "test").pairs())
    translations = [each.text for each in translator.translate([pair.source for pair in pairs])]
    # int8 rounds a little differently from one processor to the next
    assert quick_bleu(translations, [pair.target for pair in pairs]) == pytest.approx(scores["test"]["bleu"], abs=0.5)


def test_both_engines_translate_it_alike(translator: Translator) -> None:
    sources = [pair.source for pair in builtin_corpus("tatoeba-en-de", "test").pairs()][::20]
    plain = Translator.load("en-de", engine="torch")
    ours, theirs = ([each.text for each in one.translate(sources)] for one in (plain, translator))
    same = sum(one == other for one, other in zip(ours, theirs, strict=True))
    assert same / len(sources) >= 0.8  # int8 against float32; float32 against float32 is in the parity tests


def test_compare_finds_no_difference_between_a_model_and_its_copy(translator: Translator, tmp_path: Path) -> None:
    shutil.copytree(translator.path, tmp_path / "copy")
    pairs = list(builtin_corpus("tatoeba-en-de", "test").pairs())[::40]
    for name, lines in (("test.en", [pair.source for pair in pairs]), ("test.de", [pair.target for pair in pairs])):
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    result = subprocess.run(
        [sys.executable, "-m", "transduce", "compare", "en-de", "copy", "test.en", "test.de", "--json"],
        cwd=tmp_path, capture_output=True, text=True, encoding="utf-8", check=False,
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    systems = json.loads(result.stdout)["systems"]
    assert systems["en-de"]["bleu"]["value"] == systems["copy"]["bleu"]["value"] > 20
    assert systems["copy"]["bleu"]["p_value"] == 1.0


def test_pytorch_in_eight_bits_writes_nearly_the_same() -> None:
    pairs = list(builtin_corpus("tatoeba-en-de", "test").pairs())[-120:]
    sources = [pair.source for pair in pairs]
    exact, rounded = (Translator.load("en-de", engine).translate(sources) for engine in ("torch", "torch-int8"))
    assert quick_bleu([each.text for each in rounded], [each.text for each in exact]) > 85
    assert any(one.score != other.score for one, other in zip(exact, rounded, strict=True))  # it was rounded
