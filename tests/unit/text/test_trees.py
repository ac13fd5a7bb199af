"""Trees and the symbols they are written as: one from the other, and back."""

from __future__ import annotations

import re
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import InputError
from transduce.text import Tokenizer
from transduce.text.penn import read_tree
from transduce.text.trees import Span, SymbolIds, Tree, symbols_of

CAT = Tree("S", (Tree("NP", ("The", "cat")), Tree("VP", ("sat", Tree("ADVP", ("down",)))), "."))

words = st.text("abcXYZ0189()[]*-.,'\"§ä漢", min_size=1, max_size=5)
trees = st.recursive(
    words,
    lambda parts: st.builds(
        Tree,
        st.sampled_from(["S", "NP", "VP", "SBAR", "X", "-LRB-"]),
        st.lists(parts, min_size=1, max_size=4).map(tuple),
    ),
    max_leaves=30,
).filter(lambda tree: isinstance(tree, Tree))


def test_a_tree_as_symbols() -> None:
    word = r"\*\d+"
    expected = rf"\(S\(NP({word})({word})\)NP\(VP({word})\(ADVP({word})\)ADVP\)VP({word})\)S"
    found = re.fullmatch(expected, CAT.symbols())
    assert found
    the, cat, sat, down, stop = found.groups()
    assert cat == sat  # which end alike
    assert len({the, cat, down, stop}) == 4


def test_a_tree_as_treebanks_write_it() -> None:
    written = "(S (NP (XX The) (XX cat)) (VP (XX sat) (ADVP (XX down))) (XX .))"
    assert str(CAT) == written
    assert str(Tree("NP", ("(", "a)"))) == "(NP (XX -LRB-) (XX a-RRB-))"


def test_what_is_in_a_tree() -> None:
    assert CAT.words() == ["The", "cat", "sat", "down", "."]
    assert CAT.labels() == {"S", "NP", "VP", "ADVP"}
    assert CAT.spans() == [Span("S", 0, 5), Span("NP", 0, 2), Span("VP", 2, 4), Span("ADVP", 3, 4)]


@given(trees)
def test_symbols_give_the_tree_back(tree: Tree) -> None:
    assert Tree.of_symbols(tree.symbols(), tree.words()) == tree


@given(trees)
def test_what_is_written_for_treebanks_is_read_again(tree: Tree) -> None:
    assert read_tree(f"( {tree} )") == tree


@given(trees)
def test_a_constituent_lies_within_the_one_before_or_behind_it(tree: Tree) -> None:
    spans = tree.spans()
    assert spans[0] == Span(tree.label, 0, len(tree.words()))
    for before, span in pairwise(spans):
        assert 0 <= span.start < span.end <= len(tree.words())
        assert span.start >= before.end or before.start <= span.start <= span.end <= before.end


@pytest.mark.parametrize(
    ("symbols", "why"),
    [
        ("", "it is over 0 words, the sentence has 2"),
        ("(S*1*2)S and more", "more in it than brackets and words"),
        ("(S*1)S", "over 1 words"),
        ("(S*1*2*3)S", "over 3 words"),
        ("(S*1*2)NP", r"'\)NP' closes nothing"),
        ("(S(NP)NP*1*2)S", r"'\)NP' closes nothing"),
        ("(S*1*2)S)S", r"'\)S' closes nothing"),
        ("(S*1(NP*2)NP", "not all of it is in one bracket"),
        ("(S*1)S(S*2)S", "not all of it is in one bracket"),
        ("*1*2", "not all of it is in one bracket"),
        ("(S*1)S*2", "not all of it is in one bracket"),
    ],
)
def test_symbols_that_make_no_tree_are_refused(symbols: str, why: str) -> None:
    with pytest.raises(InputError, match=why):
        Tree.of_symbols(symbols, ["a", "b"])


def test_each_symbol_is_one_piece_of_a_vocabulary_that_protects_them() -> None:
    labels = ["NP", "S", "SBAR", "VP", "ADVP", "X", "NX", "-LRB-"]
    vocabulary = Tokenizer.learn([CAT.symbols(), "(X*1)X"], 900, protected=symbols_of(labels))
    ids = SymbolIds.of(vocabulary)
    encoded = vocabulary.encode(CAT.symbols())
    assert tuple(encoded[: len(ids.start)]) == ids.start
    pieces = vocabulary.pieces(encoded[len(ids.start) :])
    assert [piece for piece in pieces if piece[0] != "*"] == ["(S", "(NP", ")NP", "(VP", "(ADVP", ")ADVP", ")VP", ")S"]
    assert tuple(index for index in encoded if index in ids.endings) == ids.of_words(CAT.words())
    assert vocabulary.decode(encoded) == CAT.symbols()
    brackets = vocabulary.pieces(ids.openings), vocabulary.pieces(ids.closings)
    assert sorted(brackets[0]) == sorted(f"({label}" for label in labels)
    assert [opening[1:] for opening in brackets[0]] == [closing[1:] for closing in brackets[1]]


def test_a_vocabulary_without_the_symbols_is_no_parsers() -> None:
    with pytest.raises(InputError, match="no symbols for trees"):
        SymbolIds.of(Tokenizer.learn(["The cat sat."], 300, protected=["(S", ")S"]))
