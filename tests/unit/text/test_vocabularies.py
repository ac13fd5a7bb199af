"""One vocabulary for both sides, or one each; and the tag that asks for a language."""

from __future__ import annotations

from pathlib import Path

import pytest

from transduce.errors import InputError
from transduce.text import Vocabularies
from transduce.text.tokenizer import PAD, UNKNOWN

PAIRS = [(f"we {verb} the {thing} <br>", f"ты {other} {noun}")
         for verb, other in (("paint", "красишь"), ("find", "найдёшь"), ("see", "видишь"))
         for thing, noun in (("house", "дом"), ("river", "реку"), ("bicycle", "велосипед"))]  # fmt: skip


@pytest.fixture(scope="module")
def shared() -> Vocabularies:
    return Vocabularies.learn(PAIRS, 400, languages=["ru", "de"], protected=["<br>"])


@pytest.fixture(scope="module")
def apart() -> Vocabularies:
    return Vocabularies.learn(PAIRS, 320, shared=False, languages=["ru", "de"], protected=["<br>"])


def test_a_shared_vocabulary_is_one_object_and_knows_both_sides(shared: Vocabularies) -> None:
    assert shared.shared
    assert shared.source is shared.target
    assert {"▁paint", "▁дом"} <= set(shared.source.all_pieces())


def test_vocabularies_apart_know_their_own_side_only(apart: Vocabularies) -> None:
    assert not apart.shared
    letters = [
        {letter for piece in side.all_pieces()[260:] for letter in piece} for side in (apart.source, apart.target)
    ]
    assert "p" in letters[0]
    assert "д" in letters[1]
    assert not letters[0] & set("дкр")
    assert not letters[1] & set("phw")


def test_no_text_is_lost_on_either_side(apart: Vocabularies) -> None:
    """What is foreign to a side is written as bytes."""
    for tokenizer in (apart.source, apart.target):
        assert tokenizer.decode(tokenizer.encode("we видишь 你好 <br>")) == "we видишь 你好 <br>"


def test_protected_symbols_are_whole_on_both_sides(apart: Vocabularies) -> None:
    for tokenizer in (apart.source, apart.target):
        assert tokenizer.pieces(tokenizer.encode("x<br>y")).count("<br>") == 1


@pytest.mark.parametrize("name", ["shared", "apart"])
def test_what_is_written_reads_as_the_same(name: str, request: pytest.FixtureRequest, tmp_path: Path) -> None:
    vocabularies = request.getfixturevalue(name)
    files = {"shared": ["tokenizer.model"], "apart": ["source.model", "target.model"]}[name]
    assert list(vocabularies.files()) == files
    for file, contents in vocabularies.files().items():
        (tmp_path / file).write_bytes(contents)
    read = Vocabularies.load(tmp_path, shared=name == "shared")
    assert read.files() == vocabularies.files()
    assert read.shared is vocabularies.shared


def test_a_source_begins_with_the_tag_of_its_language(shared: Vocabularies, apart: Vocabularies) -> None:
    for vocabularies in (shared, apart):
        plain = vocabularies.encode_sources(["we paint", "", "see"])
        russian, german = (vocabularies.encode_sources(["we paint", "", "see"], to) for to in ("ru", "de"))
        assert plain == vocabularies.source.encode_batch(["we paint", "", "see"])
        assert [row[1:] for row in russian] == [row[1:] for row in german] == plain
        assert russian[1] == german[1] == []
        assert {row[0] for row in russian if row} == {vocabularies.source.tag("<2ru>")}
        assert {row[0] for row in german if row} == {vocabularies.source.tag("<2de>")}


def test_a_language_that_was_not_learned_is_refused(shared: Vocabularies) -> None:
    with pytest.raises(InputError, match=r"no tag '<2fr>'"):
        shared.encode_sources(["we"], "fr")


def test_tags_are_never_written(shared: Vocabularies, apart: Vocabularies) -> None:
    assert set(shared.source.tags) <= set(shared.target.unwritten)
    assert {PAD, UNKNOWN} <= set(shared.target.unwritten)
    assert len(shared.source.tags) == len(apart.source.tags) == 2
    assert apart.target.tags == []
    assert shared.target.decode([*shared.source.tags, *shared.target.encode("дом")]) == "дом"
