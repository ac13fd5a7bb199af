"""The built-in corpora are there, whole, credited, and with nothing of dev or test in train."""

from __future__ import annotations

import pytest

from transduce.data.builtin import BUILTIN, BuiltinCorpus, builtin_corpus, list_corpora
from transduce.errors import InputError

NAMES = ["tatoeba-en-de", "tatoeba-en-fr", "everyday-en-twi"]


def keys(texts: list[str]) -> set[str]:
    return {" ".join(text.casefold().split()) for text in texts}


def test_all_corpora_are_listed() -> None:
    assert [corpus.name for corpus in list_corpora()] == NAMES


@pytest.mark.parametrize("corpus", list_corpora(), ids=lambda corpus: corpus.name)
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
    text = (corpus.folder / "LICENSE.txt").read_text(encoding="utf-8")
    assert corpus.licence in text
    assert "tatoeba.org" in text
    assert "tatoeba.org" in corpus.credit
    assert all(f"{count:,} pairs" in text for count in corpus.pairs.values())


def test_the_languages_are_as_named() -> None:
    umlauts = sum("ü" in pair.target for pair in builtin_corpus("tatoeba-en-de", "dev").pairs())
    accents = sum("é" in pair.target for pair in builtin_corpus("tatoeba-en-fr", "dev").pairs())
    twi = sum("ɛ" in pair.target for pair in builtin_corpus("everyday-en-twi", "dev").pairs())
    assert min(umlauts, accents, twi) > 100


def test_the_package_stays_small() -> None:
    folders = {corpus.folder for corpus in BUILTIN.values()}
    assert sum(file.stat().st_size for folder in folders for file in folder.iterdir()) < 8_000_000


def test_an_unknown_name_is_answered_with_the_nearest() -> None:
    with pytest.raises(InputError, match=r"'tatoeba-en-ge' is not a built-in corpus\. Did you mean 'tatoeba-en-de'\?"):
        builtin_corpus("tatoeba-en-ge")
    with pytest.raises(InputError, match=r"everyday-en-twi has no split 'test'\. .*Valid: dev, train\."):
        builtin_corpus("everyday-en-twi", "test")
