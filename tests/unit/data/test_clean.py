"""What cleaning drops, what it keeps, and that it counts both."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any

import pytest

from transduce.data.clean import CleaningCounts, CleaningRules, SeenPairs, clean, count_words
from transduce.data.corpus import Pair
from transduce.errors import ConfigError


def cleaned(*pairs: tuple[str, str], **rules: Any) -> tuple[list[Pair], dict[str, int]]:
    """The pairs kept, and the counts that are not zero."""
    counts = CleaningCounts()
    kept = list(clean((Pair(*pair) for pair in pairs), CleaningRules(**rules), counts))
    return kept, {reason: count for reason, count in counts.as_dict().items() if count}


def words(number: int) -> str:
    return " ".join(["word"] * number)


def test_good_pairs_pass_unchanged_and_in_order() -> None:
    pairs = [Pair(" Hello. ", "Hallo."), Pair("b", "a"), Pair("a", "b")]
    assert cleaned(*pairs) == (pairs, {"read": 3, "kept": 3})


@pytest.mark.parametrize("pair", [("", "a"), ("a", ""), ("", ""), (" \t", "a"), ("a", "\u3000\u00a0")])
def test_a_blank_side_is_dropped(pair: tuple[str, str]) -> None:
    assert cleaned(pair) == ([], {"read": 1, "empty": 1})


@pytest.mark.parametrize(
    ("pair", "reason"),
    [
        ((words(250), words(250)), "kept"),
        ((words(251), words(250)), "too_long"),
        ((words(250), words(251)), "too_long"),
        (("x" * 2000, "y"), "kept"),
        (("y", "x" * 2001), "too_long"),
        ((words(1), words(7)), "kept"),
        ((words(1), words(9)), "kept"),
        ((words(10), words(1)), "ratio"),
        ((words(20), words(123)), "kept"),
        ((words(20), words(124)), "ratio"),
    ],
)
def test_the_limits_are_as_documented(pair: tuple[str, str], reason: str) -> None:
    assert cleaned(pair)[1] == {"read": 1, reason: 1}


def test_scripts_without_spaces_are_not_taken_for_one_word() -> None:
    pair = (
        "I was late for school because the train did not come this morning.",
        "今朝は電車が来なかったので学校に遅れました。",
    )
    assert cleaned(pair)[1] == {"read": 1, "kept": 1}
    assert cleaned((words(5), "漢" * 600))[1] == {"read": 1, "too_long": 1}
    assert count_words("Ɛyɛ me dɔ paa, déjà vu") == 6


def test_exact_duplicates_are_dropped_and_near_ones_kept() -> None:
    pairs = [("a b", "c"), ("a", "b c"), ("a b", "c"), ("a b", "C"), ("c", "a b"), ("a b", "c")]
    kept, counts = cleaned(*pairs)
    assert kept == [Pair("a b", "c"), Pair("a", "b c"), Pair("a b", "C"), Pair("c", "a b")]
    assert counts == {"read": 6, "kept": 4, "duplicate": 2}
    assert cleaned(*pairs, duplicates=False)[1] == {"read": 6, "kept": 6}


def test_rules_can_be_changed() -> None:
    assert cleaned((words(4), words(1)), max_words=3)[1] == {"read": 1, "too_long": 1}
    assert cleaned(("abcd", "a"), max_characters=3)[1] == {"read": 1, "too_long": 1}
    assert cleaned((words(5), words(1)), max_ratio=1)[1] == {"read": 1, "ratio": 1}


@pytest.mark.parametrize("rule", [{"max_words": 0}, {"max_characters": -1}, {"max_ratio": 0.5}])
def test_impossible_rules_are_errors(rule: dict[str, Any]) -> None:
    ((name, value),) = rule.items()
    with pytest.raises(ConfigError, match=f"{name}={value} cannot work. It must be 1 or more"):
        CleaningRules(**rule)


def test_counts_go_on_from_corpus_to_corpus() -> None:
    counts = CleaningCounts()
    for _ in range(2):
        list(clean([Pair("a", "b"), Pair("", "b")], CleaningRules(), counts))
    assert counts == CleaningCounts(read=4, kept=2, empty=2)


def test_duplicates_are_found_across_corpora_but_not_across_languages() -> None:
    counts, seen = CleaningCounts(), SeenPairs()
    corpora = [("", [Pair("a", "b"), Pair("Tom", "Tom")]), ("", [Pair("c", "d"), Pair("a", "b")]),
               ("fr", [Pair("Tom", "Tom"), Pair("a", "b")]), ("fr", [Pair("a", "b")])]  # fmt: skip
    kept = [list(clean(pairs, CleaningRules(), counts, seen, language)) for language, pairs in corpora]
    assert kept == [corpora[0][1], [Pair("c", "d")], corpora[2][1], []]
    assert (counts.kept, counts.duplicate) == (5, 2)


def test_the_summary_is_one_line_in_words() -> None:
    counts = CleaningCounts(read=12_345, kept=12_000, too_long=300, ratio=5, duplicate=40)
    assert counts.summary() == ("Kept 12,000 of 12,345 pairs; dropped 300 too long, 5 of unlike lengths, 40 duplicate.")
    assert CleaningCounts(read=1000, kept=1000).summary() == "Kept all 1,000 pairs."


def test_no_duplicate_is_missed_and_mistakes_are_as_rare_as_stated() -> None:
    """In a table a thousandth of the real one, as full as the real one is after 50 million pairs."""
    seen = SeenPairs(log2_bits=19)
    filling = [Pair(f"old {n}", "x") for n in range(50_000_000 >> 10)]
    for pair in filling:
        seen.add(pair)
    assert not any(seen.add(pair) for pair in filling)
    seen_table = bytes(seen.table)
    mistakes = 0
    for n in range(20_000):
        mistakes += not seen.add(Pair(f"new {n}", "x"))
        seen.table[:] = seen_table
    expected = (1 - math.exp(-4 * len(filling) / 2**19)) ** 4
    assert expected == pytest.approx(0.01, rel=0.1)  # "once in 100"
    assert mistakes / 20_000 == pytest.approx(expected, rel=0.3)


def test_memory_does_not_grow_with_the_corpus() -> None:
    tracemalloc.start()
    try:
        pairs = (Pair(f"sentence {n}", f"Satz {n}") for n in range(50_000))
        assert sum(1 for _ in clean(pairs, CleaningRules(), CleaningCounts())) == 50_000
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 65 << 20
