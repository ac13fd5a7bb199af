"""Models are found by languages, whatever these are called; where none or several fit, nothing is guessed."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from transduce import Translator, bundle, catalogue
from transduce.bundle import Bundle, builtin_folder, builtin_models, find_model
from transduce.catalogue import ListedModel, builtin_list, model_between, models_in
from transduce.errors import BundleError, ConfigError, InputError

PAIRS = {"en-de": ("en", "de"), "de-en": ("de", "en"), "en-twi": ("en", "twi"), "twi-en": ("twi", "en")}


def copied(path: Path, source: str | None, target: str | None) -> Path:
    """A copy of the model en-de that says it has other languages."""
    shutil.copytree(builtin_folder() / "en-de", path)
    config = json.loads((path / "config.json").read_text(encoding="utf-8"))
    config |= {"source_language": source, "target_language": target}
    (path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    return path


@pytest.fixture
def shelf(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Four models in place of those that come along, so that the tests do not depend on which these are."""
    folder = tmp_path / "shelf"
    for name, languages in PAIRS.items():
        copied(folder / name, *languages)
    for module in (bundle, catalogue):
        monkeypatch.setattr(module, "builtin_folder", lambda: folder)
    return folder


def test_every_model_that_comes_along_is_found_by_its_languages() -> None:
    for model in builtin_list():
        assert model.builtin
        assert model.pairs
        assert model_between(model.source, model.targets[0]).name == model.name
        assert Translator.between(model.source or "", model.targets[0]).path == builtin_folder() / model.name


@pytest.mark.parametrize(
    ("source", "target", "name"),
    [("en", "twi", "en-twi"), ("en", "ak", "en-twi"), ("English", "Twi", "en-twi"), ("tw", "eng", "twi-en"),
     ("DE", "en", "de-en"), (None, "ger", "en-de"), ("aka", None, "twi-en")],
)  # fmt: skip
def test_a_language_has_many_names(shelf: Path, source: str | None, target: str | None, name: str) -> None:
    assert model_between(source, target).bundle.path == shelf / name


@pytest.mark.parametrize(
    ("source", "target", "message"),
    [
        ("en", "twe", r"no built-in model translates from en into twe\. Did you mean 'en-twi'\? Valid: de-en, en-de, "),
        ("German", "twi", r"from German into twi\. .*Valid: de-en, en-de, en-twi, twi-en\."),
        (None, "en", r"several models .* into en: de-en, twi-en\. Say the language that the text is in as well, or "),
        ("en", None, r"several models translate from en into any language: en-de, en-twi\. Say the language to trans"),
    ],
)
def test_none_or_several_are_told(shelf: Path, source: str | None, target: str | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        model_between(source, target)


def test_two_models_for_the_same_languages_are_told_apart_by_name(shelf: Path) -> None:
    copied(shelf / "en-de-2", "en", "de")
    with pytest.raises(ConfigError, match=r"several .* from en into de: en-de, en-de-2\. Choose one by its name\."):
        model_between("en", "de")


def test_the_usual_model_comes_first(shelf: Path) -> None:
    assert builtin_models() == ["en-de", "de-en", "en-twi", "twi-en"]


def test_what_is_listed_of_a_model(tmp_path: Path) -> None:
    path = copied(tmp_path / "models" / "mine", None, "de")
    (path / "scores.json").write_text(json.dumps({"dev": {"bleu": 12.5, "decoding": "greedy"}, "step": 7}))
    (path / "run").mkdir()
    (path / "run" / "checkpoint").write_bytes(bytes(5_000_000))
    (tmp_path / "models" / "unfinished" / "run").mkdir(parents=True)
    (found,) = models_in(tmp_path / "models")
    model = ListedModel("mine", Bundle.open(found))
    assert (model.source, model.targets, model.pairs) == (None, ["de"], [])
    assert (model.measured_on, model.scores) == ("dev", {"bleu": 12.5})
    assert 1 < model.megabytes < 12  # without what is left of its training
    assert list(models_in(path)) == [path]
    (path / "scores.json").write_text("[")
    assert ListedModel("mine", Bundle.open(path)).as_dict() | {"path": ""} == {
        "name": "mine", "builtin": False, "path": "", "task": "translation", "source": None, "targets": ["de"],
        "measured_on": None, "scores": {}, "megabytes": round(model.megabytes, 2), "licence": "CC BY 2.0",
    }  # fmt: skip
    with pytest.raises(InputError, match="there is no such directory"):
        list(models_in(tmp_path / "nowhere"))


def test_a_name_is_that_of_the_built_in_model_and_dot_slash_is_a_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "en-de").mkdir()
    assert find_model("en-de") == builtin_folder() / "en-de"  # a folder of text is no model
    assert find_model("./en-de") == Path("en-de")
    assert find_model(Path("en-de")) == Path("en-de")
    assert find_model(Path("elsewhere/en-de")) == Path("elsewhere/en-de")
    (tmp_path / "en-de").rmdir()
    assert find_model(Path("en-de")) == builtin_folder() / "en-de"
    copied(tmp_path / "en-de", "en", "xx")
    with pytest.raises(BundleError, match=r"'en-de' is the name of a built-in model, and of a model in this directory"):
        find_model("en-de")
    assert Bundle.open(find_model("./en-de")).config.target_language == "xx"
