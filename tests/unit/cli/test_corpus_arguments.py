"""What is given to `transduce train`: built-in names, files in pairs and files of two columns, in any mixture."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.cli.corpus_arguments import dev_corpora, training_corpora
from transduce.data.builtin import builtin_corpus
from transduce.data.corpus import Corpus
from transduce.errors import ConfigError, InputError


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Some files to name, in the current directory."""
    monkeypatch.chdir(tmp_path)
    for name in ("a.en", "a.de", "b.en", "b.fr"):
        Path(name).write_text("one\ntwo\n")
    for name in ("both.tsv", "columns"):
        Path(name).write_text("\none\teins\ntwo\tzwei\n")
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "names"),
    [
        ("a.en a.de", ["a.en + a.de"]),
        ("a.en a.de b.en b.fr", ["a.en + a.de", "b.en + b.fr"]),
        ("both.tsv", ["both.tsv"]),
        ("columns", ["columns"]),
        ("columns a.en a.de both.tsv", ["columns", "a.en + a.de", "both.tsv"]),
        ("tatoeba-en-de", ["train.en.gz + train.de.gz"]),
        ("tatoeba-en-de a.en a.de everyday-en-twi",
         ["train.en.gz + train.de.gz", "a.en + a.de", "train.en.gz + train.twi.gz"]),
        ("a.en columns", ["a.en + columns"]),  # a second side may hold tabs
        ("missing.en missing.de", ["missing.en + missing.de"]),  # reading says what is wrong with it
        ("missing.tsv a.en a.de", ["missing.tsv", "a.en + a.de"]),
    ],
)  # fmt: skip
def test_arguments_become_corpora_in_their_order(arguments: str, names: list[str]) -> None:
    assert [corpus.name for corpus in training_corpora(arguments.split())] == names


def test_a_file_goes_before_a_built_in_corpus_of_the_same_name(folder: Path) -> None:
    (folder / "tatoeba-en-de").write_text("one\n")
    assert training_corpora(["tatoeba-en-de", "a.de"]) == [Corpus(Path("tatoeba-en-de"), Path("a.de"))]


@pytest.mark.parametrize(
    ("arguments", "where"),
    [("a.en", "a.en"), ("a.en a.de b.en", "b.en"), ("both.tsv a.en", "a.en"), ("a.en tatoeba-en-de", "a.en"),
     ("a.en both.tsv", "a.en")],
)  # fmt: skip
def test_a_file_that_is_left_over_is_named(arguments: str, where: str) -> None:
    with pytest.raises(InputError, match=r"one side of a corpus is given without the other\. Give two") as caught:
        training_corpora(arguments.split())
    assert caught.value.where == where


def test_a_first_line_with_a_tab_is_the_reason_why_the_next_file_is_left_over() -> None:
    with pytest.raises(InputError, match=r"^a\.de: .*\(columns is taken for a \.tsv: its first line has a tab\.\)"):
        training_corpora(["columns", "a.de"])


def test_a_misspelt_name_is_answered_with_the_nearest() -> None:
    for arguments in (["tatoeba-en-dee"], ["tatoeba-en-dee", "a.en", "a.de"]):
        with pytest.raises(InputError, match=r"neither a file nor a built-in corpus\. Did you mean 'tatoeba-en-de'\?"):
            training_corpora(arguments)
    with pytest.raises(InputError, match="no text is given"):
        training_corpora([])


def test_weights_are_given_in_the_order_of_the_corpora() -> None:
    corpora = training_corpora(["tatoeba-en-de", "a.en", "a.de"], weights="0.5, 5")
    assert [corpus.weight for corpus in corpora] == [0.5, 5.0]
    assert [corpus.weight for corpus in training_corpora(["columns", "both.tsv"])] == [1.0, 1.0]


@pytest.mark.parametrize(
    ("weights", "message"),
    [
        ("1", r"--weights 1 has 1 parts, but the corpora are 2: columns, a\.en \+ a\.de"),
        ("1,2,3", "has 3 parts, but the corpora are 2"),
        ("1,much", "the weight 'much' is not a number"),
        ("1,", "the weight '' is not a number"),
        ("1,0", r"a\.en \+ a\.de: weight=0\.0 cannot work\. It must be above 0"),
        ("-1,1", r"columns: weight=-1\.0 cannot work"),
        ("1,nan", "weight=nan cannot work"),
    ],
)
def test_weights_that_cannot_work_are_named(weights: str, message: str) -> None:
    with pytest.raises((InputError, ConfigError), match=message):
        training_corpora(["columns", "a.en", "a.de"], weights=weights)


def test_languages_come_from_names_or_as_given() -> None:
    arguments = ["everyday-en-twi", "a.en", "a.de", "columns"]
    directions = [("en", "twi"), ("en", "de"), (None, None)]
    assert [corpus.direction for corpus in training_corpora(arguments)] == directions
    given = training_corpora(arguments, languages="en-twi,fr-de,en-pt-BR")
    assert [corpus.direction for corpus in given] == [("en", "twi"), ("fr", "de"), ("en", "pt-BR")]
    assert {corpus.direction for corpus in training_corpora(arguments, languages="en-de")} == {("en", "de")}
    with pytest.raises(InputError, match=r"--languages en-de,en-fr has 2 parts, but the corpora are 3"):
        training_corpora(arguments, languages="en-de,en-fr")
    with pytest.raises(ConfigError, match="'en' is not a direction"):
        training_corpora(arguments, languages="en")


def test_dev_sets_are_the_built_in_ones_only_if_all_corpora_are_built_in() -> None:
    names = ["everyday-en-twi", "tatoeba-en-de"]
    dev = dev_corpora(names, training_corpora(names), None, None)
    assert [corpus.source for corpus in dev] == [builtin_corpus(name, "dev").source for name in names]
    assert [corpus.direction for corpus in dev] == [("en", "twi"), ("en", "de")]
    mixed = ["tatoeba-en-de", "a.en", "a.de"]
    assert dev_corpora(mixed, training_corpora(mixed), None, None) == []
    twice = ["everyday-en-twi", "everyday-en-twi"]
    assert len(dev_corpora(twice, training_corpora(twice), None, None)) == 1


def test_a_given_dev_set_goes_in_the_direction_of_the_first_corpus() -> None:
    names = ["tatoeba-en-de", "b.en", "b.fr"]
    (dev,) = dev_corpora(names, training_corpora(names), Path("b.en"), Path("b.fr"))
    assert (dev.name, dev.direction) == ("b.en + b.fr", ("en", "de"))
    with pytest.raises(InputError, match="both --dev-source and --dev-target"):
        dev_corpora(names, training_corpora(names), Path("b.en"), None)
