"""Normalisation and subwords: nothing is lost, and the same seed gives the same segmentation."""

from __future__ import annotations

import subprocess
import sys
from functools import cache
from pathlib import Path
from random import Random

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from transduce.errors import ConfigError, InputError
from transduce.text import Tokenizer, normalise
from transduce.text.tokenizer import SubwordKind

LINES = [f"{subject} {verb} the {thing}{mark}" for subject in ("We", "They", "Kofi and Ama", "Nobody")
         for verb in ("painted", "understand", "repaired", "will find") for thing in ("house", "bicycles", "question")
         for mark in (".", "!", "?")]  # fmt: skip


@pytest.fixture(scope="module", params=["bpe", "unigram"])
def tokenizer(request: pytest.FixtureRequest) -> Tokenizer:
    return Tokenizer.learn(LINES, 400, request.param, protected=["@@1@@"], tags=["<2twi>"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("  two \t spaces\n", "two spaces"),
        ("e\u0301te\u0301", "été"),
        ("a\u0000b\u0007c", "a b c"),
        ("no\u00a0break\u2028line\u3000wide", "no break line wide"),
        ("\ufeffmark", "mark"),
        ("under▁score", "under_score"),
        ("Ɛte sɛn? ɔkɔ", "Ɛte sɛn? ɔkɔ"),
        ("family 👨‍👩‍👧 emoji", "family 👨‍👩‍👧 emoji"),
        ("שלום \u200fעולם", "שלום \u200fעולם"),
        ("", ""),
    ],
)
def test_normalise(text: str, expected: str) -> None:
    assert normalise(text) == expected


@given(st.text())
def test_normalising_twice_changes_nothing(text: str) -> None:
    assert normalise(normalise(text)) == normalise(text)


@settings(max_examples=300)
@given(text=st.text(max_size=60))
def test_any_normalised_text_decodes_to_itself(tokenizer: Tokenizer, text: str) -> None:
    assert tokenizer.decode(tokenizer.encode(text)) == normalise(text)


@pytest.mark.parametrize("text", ["<s> </s> <pad> <unk> <0x41>", "<2twi> is text here", "ɛ ɔ 你好 🎉", "", "   "])
def test_text_that_looks_like_a_special_id_is_only_text(tokenizer: Tokenizer, text: str) -> None:
    ids = tokenizer.encode(text)
    assert min(ids, default=4) > 3
    assert tokenizer.decode(ids) == normalise(text)


def test_a_protected_symbol_is_one_id_and_a_tag_is_never_read_from_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.pieces(tokenizer.encode("see @@1@@")).count("@@1@@") == 1
    assert tokenizer.tag("<2twi>") not in tokenizer.encode("<2twi>")
    with pytest.raises(InputError, match=r"no tag '<2fr>'"):
        tokenizer.tag("<2fr>")


SYMBOLS = ["<br>", "{name}", "%s", ",", '"', "||", "[", "ɛ", "\\n"]


@pytest.mark.parametrize("kind", ["bpe", "unigram"])
@given(words=st.lists(st.sampled_from([*SYMBOLS, "We", "house", " ", " ", "x"]), max_size=12))
def test_protected_symbols_survive_anywhere_in_a_text(kind: SubwordKind, words: list[str]) -> None:
    tokenizer, text = with_symbols(kind), "".join(words)
    ids = tokenizer.encode(text)
    assert tokenizer.decode(ids) == normalise(text)
    pieces = [piece for piece in tokenizer.pieces(ids) if piece in SYMBOLS]
    assert pieces == [word for word in words if word in SYMBOLS]
    assert [tokenizer.decode(row) for row in tokenizer.encode_sampled([text], 0.5, Random(1))] == [normalise(text)]


@cache
def with_symbols(kind: SubwordKind) -> Tokenizer:
    return Tokenizer.learn(LINES, 400, kind, protected=SYMBOLS)


@pytest.mark.parametrize(
    ("symbols", "reason"),
    [
        (["<br>", ""], "''.* is empty"),
        (["a b"], "'a b'.*white space"),
        (["e\u0301"], "normalisation changes"),
        (["▁x"], "normalisation changes"),
        (["<unk>"], "'<unk>'.*special id"),
        (["<0x41>"], "'<0x41>'.*special id"),
        (["<2de>"], "'<2de>'.*special id"),
        (["<br>", "x", "<br>"], "'<br>'.*twice"),
    ],
)
def test_what_cannot_be_protected_is_refused_with_the_reason(symbols: list[str], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Tokenizer.learn(LINES, 400, protected=symbols)


def test_special_ids_are_left_out_of_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([1, *tokenizer.encode("We painted"), 2, 0, 0]) == "We painted"


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return Tokenizer.learn(LINES, 400, protected=["@@1@@"])


def test_sampled_segmentations_differ_but_spell_the_same_text(bpe: Tokenizer) -> None:
    once, again, other = (bpe.encode_sampled(LINES, 0.3, Random(seed)) for seed in (5, 5, 6))
    assert once == again
    assert once != other
    assert once != bpe.encode_batch(LINES)
    assert [bpe.decode(ids) for ids in once] == LINES


def test_dropping_no_merge_is_sentencepieces_own_segmentation(bpe: Tokenizer) -> None:
    texts = [*LINES, "ɛ ɔ unseen letters 你好 🎉", "see @@1@@ now", "x", ""]
    assert bpe.encode_sampled(texts, 0.0, Random(1)) == bpe.encode_batch(texts)


def test_dropping_nearly_every_merge_leaves_characters(bpe: Tokenizer) -> None:
    (ids,) = bpe.encode_sampled(["We painted"], 0.9999, Random(1))
    assert bpe.pieces(ids) == ["▁", "W", "e", "▁", "p", "a", "i", "n", "t", "e", "d"]


def test_a_seed_gives_the_same_segmentation_in_another_process(bpe: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(bpe.model)
    code = (
        "import sys; from pathlib import Path; from random import Random; from transduce.text import Tokenizer; "
        f"print(Tokenizer.load(Path(sys.argv[1])).encode_sampled({LINES[:20]!r}, 0.3, Random(5)))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "tokenizer.model"], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == str(bpe.encode_sampled(LINES[:20], 0.3, Random(5)))


def test_a_small_text_gets_as_many_pieces_as_it_can_bear() -> None:
    tokenizer = Tokenizer.learn(["1 2 3", "3 2 1"], 8000)
    assert 260 < tokenizer.size < 300
    assert tokenizer.decode(tokenizer.encode("1 9 3")) == "1 9 3"


# Documents, whose line ends and spaces come back


DOCUMENT = "ACT I\n\n  Enter KOFI.\n\nKofi:\n\tÉ, what — now?\nAma: We painted the house.  Twice!\n" * 3


@cache
def of_documents(kind: SubwordKind) -> Tokenizer:
    return Tokenizer.learn([DOCUMENT, *LINES], 320, kind, documents=True)


@pytest.mark.parametrize("kind", ["char", "bpe", "unigram"])
@settings(max_examples=150)
@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="▁\0"), max_size=60))
@example(text="  two \t spaces \n\n at\u00a0both ends  ")
@example(text="e\u0301 is not composed\u2028here\x85")
@example(text="\r\n\r\n\n\r")
@example(text="<s></s><unk><0x41>")
def test_any_document_comes_back_exactly_but_for_how_its_lines_end(kind: SubwordKind, text: str) -> None:
    ids = of_documents(kind).encode_document(text)
    assert min(ids, default=4) > 3
    assert of_documents(kind).decode(ids) == text.replace("\r\n", "\n").replace("\r", "\n")


def test_the_one_mark_that_sentencepiece_takes_for_a_space_becomes_an_underscore() -> None:
    assert of_documents("char").decode(of_documents("char").encode_document("under▁score")) == "under_score"


@pytest.mark.parametrize("kind", ["char", "bpe", "unigram"])
def test_a_line_end_is_a_piece_that_no_other_piece_holds(kind: SubwordKind) -> None:
    tokenizer = of_documents(kind)
    assert [piece for piece in tokenizer.all_pieces() if "\n" in piece] == ["\n"]
    assert tokenizer.pieces(tokenizer.encode_document("\n\nhouse")).count("\n") == 2


def test_a_vocabulary_of_characters_has_each_and_nothing_longer() -> None:
    tokenizer = of_documents("char")
    text = "Enter KOFI.\n"
    assert tokenizer.pieces(tokenizer.encode_document(text)) == list(text.replace(" ", "▁"))
    written = set("".join([DOCUMENT, *LINES]).replace(" ", "▁"))
    assert "\t" in written
    assert tokenizer.decode(tokenizer.encode_document("a\tb")) == "a\tb"
    learned = [piece for piece in tokenizer.all_pieces() if not piece.startswith("<")]
    assert len(learned) == len(set(learned))
    assert set(learned) | {"\t"} == written  # which SentencePiece writes as a byte before 0.2.3


def test_a_vocabulary_of_characters_has_even_the_rarest_and_is_as_large_as_it_must_be() -> None:
    letters = [chr(0x4E00 + number) for number in range(400)]
    text = "the usual letters " * 4000 + "".join(letters)  # longer than SentencePiece would take at a time
    tokenizer = Tokenizer.learn([text], 300, "char", documents=True)
    assert {"t", *letters} <= set(tokenizer.all_pieces())


def test_learning_is_deterministic() -> None:
    assert Tokenizer.learn(LINES, 300).model == Tokenizer.learn(LINES, 300).model


def test_wrong_use_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vocabulary of 50 is too small\. Use 276 or more"):
        Tokenizer.learn(LINES, 50)
    with pytest.raises(ConfigError, match=r"vocabulary of 290 is too small: .* alone are 3\d\d"):
        Tokenizer.learn(LINES, 290, protected=[f"<{number}>" for number in range(30)])
    with pytest.raises(InputError, match=r"no text to learn"):
        Tokenizer.learn(["", "  "], 400)
    damaged = tmp_path / "tokenizer.model"
    damaged.write_bytes(Tokenizer.learn(LINES, 300).model[:200])
    with pytest.raises(InputError, match=r"tokenizer\.model: .*damaged"):
        Tokenizer.load(damaged)


def test_text_needs_neither_torch_nor_numpy() -> None:
    code = "import sys, transduce.text; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_pieces_hold_marks_and_letters_only_where_that_is_asked_for() -> None:
    tokenised = [f"{line[:-1]} d&apos; un t-shirt {line[-1]}" for line in LINES]
    apart, together = (Tokenizer.learn(tokenised, 400, split_marks=split) for split in (True, False))
    assert together.pieces(together.encode("d&apos; un t-shirt !")) == ["▁d&apos;", "▁un", "▁t-shirt", "▁!"]
    assert all(piece.strip("▁").isalpha() or not any(map(str.isalpha, piece)) for piece in _learned(apart))
    assert any(not piece.strip("▁").isalpha() and any(map(str.isalpha, piece)) for piece in _learned(together))
    for each in (apart, together):
        assert [each.decode(each.encode(line)) for line in tokenised] == tokenised


def _learned(tokenizer: Tokenizer) -> list[str]:
    """The pieces behind the special ids and the bytes."""
    pieces = tokenizer.all_pieces()
    return pieces[pieces.index("<0xFF>") + 1 :]
