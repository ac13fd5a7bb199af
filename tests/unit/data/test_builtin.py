"""The built-in data is there, whole, credited, and with nothing of dev or test in train."""

from __future__ import annotations

import numpy as np
import pytest

from transduce.data.builtin import BUILTIN, BuiltinCorpus, builtin_corpus, builtin_files, list_corpora
from transduce.data.corpus import read_lines
from transduce.data.images import Pictures
from transduce.errors import InputError
from transduce.training.recipes import recipe_names

PARALLEL = ["tatoeba-en-de", "tatoeba-en-fr", "everyday-en-twi"]
NAMES = [*PARALLEL, "tiny-shakespeare", "banking77", "mnist", "craft-trees"]


def keys(texts: list[str]) -> set[str]:
    return {" ".join(text.casefold().split()) for text in texts}


def test_all_corpora_are_listed() -> None:
    assert [corpus.name for corpus in list_corpora()] == NAMES


@pytest.mark.parametrize("corpus", [BUILTIN[name] for name in PARALLEL], ids=PARALLEL)
def test_a_corpus_holds_what_it_states_and_keeps_its_splits_apart(corpus: BuiltinCorpus) -> None:
    splits = {split: list(builtin_corpus(corpus.name, split).pairs()) for split in corpus.pairs}
    assert {split: len(pairs) for split, pairs in splits.items()} == corpus.pairs
    assert all(source.strip() and target.strip() for pairs in splits.values() for source, target in pairs)
    train_sources = keys([pair.source for pair in splits["train"]])
    train_targets = keys([pair.target for pair in splits["train"]])
    for split in splits.keys() - {"train"}:
        assert not keys([pair.source for pair in splits[split]]) & train_sources
        assert not keys([pair.target for pair in splits[split]]) & train_targets


@pytest.mark.parametrize("corpus", list_corpora(), ids=lambda corpus: corpus.name)
def test_a_corpus_comes_with_its_licence_and_credit(corpus: BuiltinCorpus) -> None:
    text = " ".join((corpus.folder / "LICENSE.txt").read_text(encoding="utf-8").split())
    assert corpus.licence in text
    assert corpus.credit
    if corpus.contents == "pairs":
        assert "tatoeba.org" in text
        assert "tatoeba.org" in corpus.credit
    unit = {"pairs": "pairs", "labelled texts": "texts", "pictures": "pictures", "trees": "trees"}.get(corpus.contents)
    assert unit is None or all(f"{count:,} {unit}" in text for count in corpus.pairs.values())


@pytest.mark.parametrize("corpus", list_corpora(), ids=lambda corpus: corpus.name)
def test_a_folder_holds_the_files_of_its_splits_and_a_licence_and_nothing_else(corpus: BuiltinCorpus) -> None:
    files = {path.name for split in corpus.pairs for path in builtin_files(corpus.name, split)}
    assert {path.name for path in corpus.folder.iterdir()} == files | {"LICENSE.txt"}
    assert corpus.recipe is None or corpus.recipe in recipe_names()


def test_the_questions_of_banking77_have_77_labels_and_are_asked_in_one_split_only() -> None:
    splits = {}
    for split, count in BUILTIN["banking77"].pairs.items():
        rows = [line.split("\t") for line in read_lines(builtin_files("banking77", split)[0])]
        assert len(rows) == count
        assert all(len(row) == 2 and row[0].strip() and row[1].strip() for row in rows)
        assert len({label for label, _ in rows}) == 77
        splits[split] = keys([text for _, text in rows])
    assert not splits["train"] & splits["test"]


def test_mnist_has_as_many_of_each_digit_and_each_picture_in_one_split_only() -> None:
    seen = {}
    for split, count in BUILTIN["mnist"].pairs.items():
        pictures = Pictures.read(*builtin_files("mnist", split))
        assert pictures.images.shape == (count, 28, 28, 1)
        assert np.bincount(pictures.labels).tolist() == [count // 10] * 10
        seen[split] = {picture.tobytes() for picture in pictures.images}
    assert not seen["train"] & seen["test"]


def test_tiny_shakespeare_is_as_long_as_its_licence_says() -> None:
    (path,) = builtin_files("tiny-shakespeare")
    text = "".join(f"{line}\n" for line in read_lines(path))
    assert len(text) == 1_115_394
    assert text.startswith("First Citizen:\nBefore we proceed any further, hear me speak.\n")


def test_the_languages_are_as_named() -> None:
    umlauts = sum("ü" in pair.target for pair in builtin_corpus("tatoeba-en-de", "dev").pairs())
    accents = sum("é" in pair.target for pair in builtin_corpus("tatoeba-en-fr", "dev").pairs())
    twi = sum("ɛ" in pair.target for pair in builtin_corpus("everyday-en-twi", "dev").pairs())
    assert min(umlauts, accents, twi) > 100


def test_the_package_stays_small() -> None:
    folders = {corpus.folder for corpus in BUILTIN.values()}
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) < 10_000_000


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'tatoeba-en-ge' is not a built-in corpus\. Did you mean 'tatoeba-en-de'\?"):
        builtin_corpus("tatoeba-en-ge")
    with pytest.raises(
        InputError, match=r"mnist holds pictures, not pairs of texts\. Train with: .*image-classification"
    ):
        builtin_corpus("mnist")
    with pytest.raises(InputError, match=r"everyday-en-twi has no split 'test'\. .*Valid: dev, train\."):
        builtin_corpus("everyday-en-twi", "test")


@pytest.mark.parametrize(
    ("name", "turned"),
    [("tatoeba-en-de", "tatoeba-de-en"), ("tatoeba-en-fr", "tatoeba-fr-en"), ("everyday-en-twi", "everyday-twi-en")],
)
def test_pairs_are_there_in_both_directions(name: str, turned: str) -> None:
    there, back = builtin_corpus(name, "dev"), builtin_corpus(turned, "dev")
    assert [(target, source) for source, target in there.pairs()] == list(back.pairs())
    assert back.direction == tuple(reversed(there.direction))
    assert BUILTIN[turned].licence == BUILTIN[name].licence
    assert BUILTIN[turned].pairs == BUILTIN[name].pairs
    assert turned not in [corpus.name for corpus in list_corpora()]


def test_what_is_no_pairs_has_one_direction() -> None:
    assert set(BUILTIN) == {*NAMES, "tatoeba-de-en", "tatoeba-fr-en", "everyday-twi-en"}
