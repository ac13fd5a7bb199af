"""Brackets counted by hand, and what must hold of any two trees."""

from __future__ import annotations

import pytest

from transduce.errors import InputError
from transduce.evaluation.parsing import score_trees
from transduce.text.penn import read_tree
from transduce.text.trees import Tree


def tree(text: str) -> Tree:
    read = read_tree(text)
    assert read is not None
    return read


GOLD = "(S (NP (DT The) (NN cat)) (VP (VBD sat) (PP (IN on) (NP (DT the) (NN mat)))) (. .))"


def test_the_right_tree_is_right() -> None:
    scores = score_trees([tree(GOLD)], [tree(GOLD)])
    assert (scores.precision, scores.recall, scores.f1, scores.exact) == (100, 100, 100, 100)
    assert (scores.gold, scores.written, scores.found, scores.unreadable) == (5, 5, 5, 0)


def test_brackets_are_counted_by_label_and_words() -> None:
    # Right: S, NP 0-2, VP 2-6, NP 4-6. Wrong: ADVP for PP, and a NP 2-3 too many.
    wrong = "(S (NP (DT The) (NN cat)) (VP (NP (VBD sat)) (ADVP (IN on) (NP (DT the) (NN mat)))) (. .))"
    scores = score_trees([tree(wrong)], [tree(GOLD)])
    assert (scores.gold, scores.written, scores.found) == (5, 6, 4)
    assert scores.precision == pytest.approx(100 * 4 / 6)
    assert scores.recall == pytest.approx(80)
    assert scores.f1 == pytest.approx(100 * 8 / 11)
    assert scores.exact == 0


def test_the_same_bracket_twice_counts_as_often_as_it_is_there() -> None:
    once, twice = tree("(S (NP (NN It)) (VP (VB is)))"), tree("(S (NP (NP (NN It))) (VP (VB is)))")
    assert score_trees([twice], [once]).found == 3
    assert score_trees([twice], [once]).written == 4
    assert score_trees([twice], [twice]).found == 4


def test_punctuation_is_left_out() -> None:
    attached = tree("(S (NP (DT The) (NN cat) (, ,)) (VP (VBD sat) (. .)))")
    apart = tree("(S (NP (DT The) (NN cat)) (, ,) (VP (VBD sat)) (. .))")
    assert score_trees([attached], [apart]).f1 == 100
    only = tree("(S (NP (NN cat)) (PRN (, ,) (. .)))")
    assert score_trees([only], [only]).gold == 2


def test_the_empty_root_does_not_count_and_particles_are_adverbs() -> None:
    assert score_trees([tree("(TOP (NP (NN a)) (NP (NN b)))")] * 1, [tree("( (NP (NN a)) (NP (NN b)))")]).gold == 2
    assert score_trees([tree("(VP (VB go) (PRT (RP on)))")], [tree("(VP (VB go) (ADVP (RB on)))")]).f1 == 100


def test_all_trees_count_together_and_unreadable_ones_as_missed() -> None:
    other = "(S (NP (NN Cats)) (VP (VBP sit)))"  # 3 brackets
    longer = "(S (NP (NN Cats)) (VP (VBP sit) (ADVP (RB here))))"
    scores = score_trees([tree(GOLD), None, tree(longer)], [tree(GOLD), tree(other), tree(other)])
    assert (scores.gold, scores.written, scores.found, scores.unreadable) == (11, 5, 5, 2)
    assert scores.precision == 100
    assert scores.recall == pytest.approx(100 * 5 / 11)
    assert scores.exact == pytest.approx(100 / 3)
    assert scores.as_dict()["f1"] == pytest.approx(100 * 10 / 16)


def test_trees_must_be_as_many() -> None:
    with pytest.raises(InputError, match=r"1 trees for 2 right ones"):
        score_trees([None], [tree(GOLD), tree(GOLD)])


def test_nothing_written_is_worth_nothing() -> None:
    scores = score_trees([None], [tree(GOLD)])
    assert (scores.precision, scores.recall, scores.f1, scores.exact) == (0, 0, 0, 0)
