"""Trees as treebanks bracket them, and words as they count them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.errors import InputError
from transduce.text.penn import read_tree, split_words
from transduce.text.trees import Tree

RAINS = Tree("S", (Tree("NP", ("It",)), Tree("VP", ("rains",)), "."))


@pytest.mark.parametrize(
    "text",
    [
        "(S (NP (PRP It)) (VP (VBZ rains)) (. .))",
        "( (S (NP (PRP It)) (VP (VBZ rains)) (. .)) )",
        "(TOP (S (NP (PRP It)) (VP (VBZ rains)) (. .)))",
        "  ( ( S(NP (PRP  It))\t(VP (VBZ rains))(. .)))\r\n",
        "( (S-HLN (NP-SBJ-1 (PRP It)) (VP=2 (VBZ rains) (NP|ADVP (-NONE- *T*-1))) (. .)) )",
        "(ROOT (S (NP (PRP It)) (VP (VBZ rains) (S (NP-SBJ (-NONE- *)) (VP (-NONE- *?*)))) (. .)))",
    ],
)
def test_traces_function_tags_and_the_outer_bracket_are_left_out(text: str) -> None:
    assert read_tree(text) == RAINS


def test_brackets_and_quotes_among_the_words_are_characters() -> None:
    tree = read_tree("(NP (`` ``) (NN a) ('' '') (-LRB- -LRB-) (NN b\\/c) (-RRB- -RRB-) (-LRB- -LSB-) (-RRB- -RSB-))")
    assert tree == Tree("NP", ('"', "a", '"', "(", "b/c", ")", "[", "]"))


def test_a_label_that_begins_with_a_hyphen_is_kept() -> None:
    assert read_tree("(NP (-LRB- (X (NN a)) (NN b)) (NN c))") == Tree(
        "NP", (Tree("-LRB-", (Tree("X", ("a",)), "b")), "c")
    )


def test_what_has_no_constituent_around_it_gets_one() -> None:
    assert read_tree("(NN Abstract)") == Tree("TOP", ("Abstract",))
    assert read_tree("( (NP (NN a)) (. .) )") == Tree("TOP", (Tree("NP", ("a",)), "."))


def test_nothing_but_traces_is_no_tree() -> None:
    assert read_tree("( (S (NP (-NONE- *)) (VP (-NONE- *?*))) )") is None


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", r"0 brackets are not closed\. Write one tree a line"),
        ("(S (NP (NN a))", r"^here:3: not a tree: 1 brackets are not closed"),
        ("(S (NN a)))", r"'\)' stands outside of the tree"),
        ("(S (NN a)) (S (NN b))", r"'\(' stands outside of the tree\. Write one tree a line"),
        ("a (S (NN b))", r"'a' stands outside of the tree"),
        ("(NP the cat)", r"the word 'cat' has no bracket of its own\. Write each word as \(NN word\)"),
        ("(NP (DT the) cat)", r"the word 'cat' has no bracket"),
        ("(NP the (NN cat))", r"a bracket follows the word 'the'"),
        ("(S (NP) (VP (VB a)))", r"nothing is in '\(NP\)'"),
        ("(S ((NN a)) (VP (VB b)))", r"a bracket has no label"),
        ("(S " * 200 + "(NN a)" + ")" * 200, r"more than 100 levels"),
    ],
)
def test_what_is_wrong_is_said_with_its_place(text: str, message: str) -> None:
    with pytest.raises(InputError, match=message):
        read_tree(text, where="here:3")


def test_as_many_levels_as_are_allowed_can_be_read_and_written() -> None:
    tree = read_tree("(S " * 100 + "(NN a)" + ")" * 100)
    assert tree is not None
    assert read_tree(str(tree)) == tree


@pytest.mark.parametrize(
    ("sentence", "words"),
    [
        ("The cat sat.", "The cat sat ."),
        ("I don't know (yet).", "I do n't know ( yet ) ."),
        ("It's Tom’s, isn’t it?", "It 's Tom ’s , is n’t it ?"),
        ("Wild-type mice, e.g. 9.2 of 1,000!", "Wild - type mice , e.g. 9.2 of 1,000 !"),
        ("See Fig. 7c and Smith et al. [3].", "See Fig. 7c and Smith et al. [ 3 ] ."),
        ("An anti-rabbit and/or HIF-1α signal... 5%", "An anti-rabbit and / or HIF - 1α signal ... 5 %"),
        ("See https://example.org/a_b.", "See https://example.org/a_b ."),
        ('He said "no" -- twice', 'He said " no " -- twice'),
        ("  ", ""),
    ],
)
def test_words_are_split_as_treebanks_do(sentence: str, words: str) -> None:
    assert split_words(sentence) == words.split()


@given(st.text())
def test_no_character_is_lost_in_splitting(text: str) -> None:
    from transduce.text import normalise

    assert "".join(split_words(text)) == normalise(text).replace(" ", "")
