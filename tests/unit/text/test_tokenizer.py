"""Normalisation and subwords: nothing is lost, and the same seed gives the same segmentation."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from transduce.errors import ConfigError, InputError
from transduce.text import Tokenizer, normalise

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


def test_special_ids_are_left_out_of_text(tokenizer: Tokenizer) -> None:
    assert tokenizer.decode([1, *tokenizer.encode("We painted"), 2, 0, 0]) == "We painted"


@pytest.fixture(scope="module")
def bpe() -> Tokenizer:
    return Tokenizer.learn(LINES, 400, protected=["@@1@@"])


def test_sampled_segmentations_differ_but_spell_the_same_text(bpe: Tokenizer) -> None:
    once, again, other = (bpe.encode_sampled(LINES, dropout=0.3, seed=seed) for seed in (5, 5, 6))
    assert once == again
    assert once != other
    assert once != bpe.encode_batch(LINES)
    assert [bpe.decode(ids) for ids in once] == LINES


def test_dropping_no_merge_is_sentencepieces_own_segmentation(bpe: Tokenizer) -> None:
    texts = [*LINES, "ɛ ɔ unseen letters 你好 🎉", "see @@1@@ now", "x", ""]
    assert bpe.encode_sampled(texts, dropout=0.0, seed=1) == bpe.encode_batch(texts)


def test_dropping_nearly_every_merge_leaves_characters(bpe: Tokenizer) -> None:
    (ids,) = bpe.encode_sampled(["We painted"], dropout=0.9999, seed=1)
    assert bpe.pieces(ids) == ["▁", "W", "e", "▁", "p", "a", "i", "n", "t", "e", "d"]


def test_a_seed_gives_the_same_segmentation_in_another_process(bpe: Tokenizer, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(bpe.model)
    code = (
        "import sys; from pathlib import Path; from transduce.text import Tokenizer; "
        f"print(Tokenizer.load(Path(sys.argv[1])).encode_sampled({LINES[:20]!r}, 0.3, 5))"
    )
    output = subprocess.run(
        [sys.executable, "-c", code, tmp_path / "tokenizer.model"], capture_output=True, text=True, check=True
    ).stdout
    assert output.strip() == str(bpe.encode_sampled(LINES[:20], 0.3, 5))


def test_a_small_text_gets_as_many_pieces_as_it_can_bear() -> None:
    tokenizer = Tokenizer.learn(["1 2 3", "3 2 1"], 8000)
    assert 260 < tokenizer.size < 300
    assert tokenizer.decode(tokenizer.encode("1 9 3")) == "1 9 3"


def test_learning_is_deterministic() -> None:
    assert Tokenizer.learn(LINES, 300).model == Tokenizer.learn(LINES, 300).model


def test_wrong_use_is_named_with_its_remedy(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"vocabulary of 50 is too small\. Use 276 or more"):
        Tokenizer.learn(LINES, 50)
    with pytest.raises(InputError, match=r"no text to learn"):
        Tokenizer.learn(["", "  "], 400)
    damaged = tmp_path / "tokenizer.model"
    damaged.write_bytes(Tokenizer.learn(LINES, 300).model[:200])
    with pytest.raises(InputError, match=r"tokenizer\.model: .*damaged"):
        Tokenizer.load(damaged)


def test_text_needs_neither_torch_nor_numpy() -> None:
    code = "import sys, transduce.text; sys.exit(bool({'torch', 'numpy'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
