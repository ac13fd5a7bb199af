"""Texts and what stands beside them: read in four forms, held out of themselves, prepared once, wrong lines named."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from transduce.data.examples import (
    ExamplePreparation,
    Form,
    PreparedExamples,
    encode_examples,
    prepare_examples,
    prepared_from_others,
)
from transduce.data.shards import Pairs
from transduce.errors import InputError
from transduce.text.tokenizer import EOS, MASK

WORDS = ["house", "river", "painting", "bicycle", "question", "bread"]
TEXTS = [f"the {one} and the {other} number {place}" for one in WORDS for other in WORDS for place in range(5)]
LABELLED = [f"{'wet' if 'river' in text else 'dry'}\t{text}" for text in TEXTS]
TAGGED = [f"{text}\t{' '.join('DET' if word == 'the' else 'X' for word in text.split())}" for text in TEXTS]
DOCUMENT = [f"Line {place}:  {text}" for place, text in enumerate(TEXTS)]
FORMS: dict[Form, list[str]] = {"texts": TEXTS, "labelled": LABELLED, "tagged": TAGGED, "documents": DOCUMENT}


@pytest.fixture
def write(tmp_path: Path) -> Callable[..., Path]:
    def write(lines: list[str], name: str = "train.txt") -> Path:
        (tmp_path / name).write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
        return tmp_path / name

    return write


@pytest.fixture
def prepared(write: Callable[..., Path], tmp_path: Path) -> Callable[..., PreparedExamples]:
    def prepared(form: Form, lines: list[str] | None = None, **settings: Any) -> PreparedExamples:
        files = [write(FORMS[form] if lines is None else lines)]
        preparation = ExamplePreparation(form, files, **({"vocab_size": 400} | settings))
        return prepare_examples(preparation, tmp_path / "prepared")

    return prepared


Writer, Prepare = Callable[..., Path], Callable[..., PreparedExamples]


def texts(prepared: PreparedExamples, pairs: Pairs) -> list[str]:
    return [prepared.vocabulary.decode(pairs.ids("source", index)) for index in range(len(pairs))]


# The four forms


def test_texts_have_nothing_beside_them(prepared: Prepare) -> None:
    found = prepared("texts")
    assert sorted(texts(found, found.train) + texts(found, found.dev)) == sorted(TEXTS)
    assert found.train.tokens["target"] == 0
    assert found.labels == []


def test_of_a_table_the_last_column_is_the_text(prepared: Prepare) -> None:
    found = prepared("texts", LABELLED)
    assert sorted(texts(found, found.train) + texts(found, found.dev)) == sorted(TEXTS)


def test_a_labelled_text_keeps_its_label(prepared: Prepare) -> None:
    found = prepared("labelled")
    assert found.labels == ["dry", "wet"]
    for pairs in (found.train, found.dev):
        for index, text in enumerate(texts(found, pairs)):
            (label,) = pairs.ids("target", index)
            assert found.labels[label] == ("wet" if "river" in text else "dry")


def test_a_tag_stands_beside_the_first_piece_of_its_word(prepared: Prepare) -> None:
    found = prepared("tagged", vocab_size=300)
    assert found.labels == ["DET", "X"]
    several = 0
    for index in range(len(found.train)):
        ids, tags = (found.train.ids(side, index).tolist() for side in ("source", "target"))
        assert len(ids) == len(tags)
        pieces = found.vocabulary.pieces(ids)
        assert [tag > 0 for tag in tags] == [piece.startswith("▁") for piece in pieces]
        words = found.vocabulary.decode(ids).split()
        names = [found.labels[tag - 1] for tag in tags if tag]
        assert names == ["DET" if word == "the" else "X" for word in words]
        several += len(ids) > len(words)
    assert several > 10  # or it would not tell first pieces from others


def test_a_document_is_kept_whole_and_measured_on_its_end(prepared: Prepare) -> None:
    found = prepared("documents", kind="char")
    whole = "".join(f"{line}\n" for line in DOCUMENT)
    (start,), (end,) = texts(found, found.train), texts(found, found.dev)
    assert start + end == whole
    assert start.endswith("\n")  # cut where a line ends
    assert 0.05 < len(end) / len(whole) < 0.2
    assert all(pairs.ids("source", 0)[-1] == EOS for pairs in (found.train, found.dev))


def test_a_document_without_lines_is_cut_all_the_same(prepared: Prepare) -> None:
    found = prepared("documents", [" ".join(TEXTS)])
    assert texts(found, found.train)[0] + texts(found, found.dev)[0] == " ".join(TEXTS) + "\n"


def test_several_documents_end_each_and_are_each_measured_on(write: Writer, tmp_path: Path) -> None:
    files = [write(DOCUMENT[:90], "a.txt"), write(DOCUMENT[90:], "b.txt")]
    found = prepare_examples(ExamplePreparation("documents", files, vocab_size=400), tmp_path / "prepared")
    assert (len(found.train), len(found.dev)) == (2, 2)
    stream = found.train.stream("source", 0, found.train.tokens["source"])
    assert (stream == EOS).sum() == 2


def test_long_texts_are_cut_with_what_stands_beside_them(prepared: Prepare) -> None:
    found = prepared("tagged", longest=6)
    for index in range(len(found.train)):
        assert len(found.train.ids("source", index)) == len(found.train.ids("target", index)) == 5


def test_blank_lines_are_no_texts(prepared: Prepare) -> None:
    found = prepared("texts", [line for text in TEXTS for line in (text, "", "   ")])
    assert len(found.train) + len(found.dev) == len(TEXTS)


# What is measured on


@pytest.mark.parametrize("form", ["texts", "labelled", "tagged"])
def test_the_same_share_is_held_out_each_time_and_nothing_of_it_is_learned_from(prepared: Prepare, form: Form) -> None:
    found = prepared(form)
    train, dev = (texts(found, pairs) for pairs in (found.train, found.dev))
    assert not {text.casefold() for text in train} & {text.casefold() for text in dev}
    assert 0.03 < len(dev) / len(TEXTS) < 0.2
    again = prepared(form, FORMS[form][::-1])  # anew, from lines in another order
    assert sorted(texts(again, again.dev)) == sorted(dev)


def test_a_text_that_stands_twice_is_on_one_side(prepared: Prepare) -> None:
    found = prepared("texts", [*TEXTS, *(text.upper() for text in TEXTS), *TEXTS])
    train, dev = ({text.casefold() for text in texts(found, pairs)} for pairs in (found.train, found.dev))
    assert not train & dev


def test_a_dev_set_of_your_own_is_measured_on_and_all_else_learned_from(write: Writer, prepared: Prepare) -> None:
    own = ["dry\tthe bread of another day", "wet\tthe river again"]
    found = prepared("labelled", dev=[write(own, "dev.txt")])
    assert texts(found, found.dev) == ["the bread of another day", "the river again"]
    assert len(found.train) == len(TEXTS)


def test_a_label_that_stands_once_is_learned_from_and_not_measured_on(prepared: Prepare) -> None:
    """Whichever text it is: what is held out is our choice, so it cannot be the user's mistake."""
    for place in range(40):
        found = prepared("labelled", [*LABELLED, f"rare\ta text of its own {place}"])
        assert found.labels == ["dry", "rare", "wet"]


def test_a_label_that_is_only_measured_on_is_refused(write: Writer, prepared: Prepare) -> None:
    with pytest.raises(InputError, match=r"train\.txt: 'damp' is measured on but nowhere in what is learned from"):
        prepared("labelled", dev=[write(["damp\tthe river"], "dev.txt")])


@pytest.mark.parametrize("form", ["texts", "labelled", "documents"])
def test_too_little_to_hold_anything_out_is_said(prepared: Prepare, form: Form) -> None:
    with pytest.raises(InputError, match=r"train\.txt: .*too little text.*dev set of your own|no text to learn"):
        prepared(form, ["a" if form == "documents" else "a\tb"])


# Prepared once


def test_the_same_preparation_is_not_made_twice_and_another_is_noticed(write: Writer, tmp_path: Path) -> None:
    stages: list[str] = []

    def prepare(**settings: Any) -> ExamplePreparation:
        preparation = ExamplePreparation("labelled", [path], **({"vocab_size": 400} | settings))
        stages.clear()
        prepare_examples(preparation, tmp_path / "prepared", lambda stage, done: stages.append(stage))
        return preparation

    path = write(LABELLED)
    first = prepare()
    assert stages[:2] == ["reading", "learning the vocabulary"]
    before = (tmp_path / "prepared" / "train" / "source.ids").stat().st_mtime_ns
    prepare()
    assert stages == []
    assert (tmp_path / "prepared" / "train" / "source.ids").stat().st_mtime_ns == before

    others = [{"vocab_size": 350}, {"kind": "unigram"}, {"longest": 9}, {"tags": [MASK]}, {"protected": ["the"]}]
    for settings in others:
        other = ExamplePreparation("labelled", [path], **({"vocab_size": 400} | settings))
        assert prepared_from_others(other, tmp_path / "prepared"), settings
    assert not prepared_from_others(first, tmp_path / "prepared")
    assert not prepared_from_others(first, tmp_path / "nowhere")
    write([*LABELLED[1:], LABELLED[0].replace("number", "of number")])
    assert prepared_from_others(first, tmp_path / "prepared")
    prepare()
    assert stages[0] == "reading"


def test_what_was_broken_off_is_made_again(prepared: Prepare, tmp_path: Path) -> None:
    prepared("labelled")
    for damage in ("", "{", '{"fingerprint": 3}', "[]"):
        (tmp_path / "prepared" / "prepared.json").write_text(damage)
        assert prepared("labelled").labels == ["dry", "wet"]


def test_a_vocabulary_that_is_given_is_kept(prepared: Prepare) -> None:
    first = prepared("texts", tags=[MASK])
    again = prepared("labelled", vocabulary=first.vocabulary.model)
    assert again.vocabulary.model == first.vocabulary.model


# Measuring with a vocabulary and labels that are there


def test_files_are_encoded_with_the_models_own_vocabulary_and_labels(
    prepared: Prepare, write: Writer, tmp_path: Path
) -> None:
    found = prepared("labelled")
    path = write(["wet\tthe river", "dry\tthe house"], "test.txt")
    pairs = encode_examples([path], "labelled", found.vocabulary, found.labels, tmp_path / "measured")
    assert [pairs.ids("target", index).tolist() for index in range(2)] == [[1], [0]]
    with pytest.raises(InputError, match=r"test\.txt: 'damp' is measured on"):
        encode_examples(
            [write(["damp\tx"], "test.txt")], "labelled", found.vocabulary, found.labels, tmp_path / "measured"
        )


# Wrong lines


@pytest.mark.parametrize(
    ("form", "line", "message"),
    [
        ("labelled", "no label", r"train\.txt:3: this line has not two columns\. Write label TAB text"),
        ("labelled", "\tno label", r"train\.txt:3: this line has not two columns"),
        ("labelled", "label\t ", r"train\.txt:3: this line has not two columns"),
        ("labelled", "a\tb\tc", r"train\.txt:3: this line has not two columns"),
        ("tagged", "words only", r"train\.txt:3: this line has not two columns\. Write words TAB tags"),
        ("tagged", "three words here\tA B", r"train\.txt:3: 3 words but 2 tags\. Write one tag for each word"),
    ],
)
def test_a_wrong_line_is_named_by_file_and_number(
    prepared: Prepare, tmp_path: Path, form: Form, line: str, message: str
) -> None:
    with pytest.raises(InputError, match=message):
        prepared(form, [*FORMS[form][:2], line, *FORMS[form][2:]])
    assert not (tmp_path / "prepared" / "prepared.json").exists()


@pytest.mark.parametrize("form", list(FORMS))
@pytest.mark.parametrize("lines", [[], ["", "  "]], ids=["empty", "blank"])
def test_a_file_without_text_is_named(prepared: Prepare, form: Form, lines: list[str]) -> None:
    with pytest.raises(InputError, match=r"train\.txt: there (is no text in it|are no lines)"):
        prepared(form, lines)


def test_a_missing_file_is_named_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"train\.tsv: there is no such file"):
        prepare_examples(ExamplePreparation("labelled", [tmp_path / "train.tsv"]), tmp_path / "prepared")
    assert not (tmp_path / "prepared").exists()
