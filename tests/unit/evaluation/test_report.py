"""Tables say what was found, and lengths are told apart."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from transduce.errors import ConfigError, InputError
from transduce.evaluation import (
    Comparison,
    Evaluation,
    LengthBucket,
    Score,
    SystemScore,
    by_length,
    compare,
    comparison_table,
    evaluate,
    evaluation_table,
    length_table,
    signatures,
)


def system_score(value: float, p_value: float | None, better: bool | None, worse: bool | None) -> SystemScore:
    return SystemScore("BLEU", value, value, value - 1, value + 1, p_value, better, worse, "nrefs:1")


def test_an_evaluation_has_a_row_per_metric() -> None:
    scores = {"bleu": Score("BLEU", 27.304, 26.1, 28.499, "s"), "ter": Score("TER", 55, 53, 57, "t")}
    assert evaluation_table(Evaluation(3, scores)) == (
        ["Metric", "Score", "95 % interval"],
        [["BLEU", "27.30", "26.10 to 28.50"], ["TER", "55.00", "53.00 to 57.00"]],
    )


def test_an_evaluation_without_intervals_has_no_column_for_them() -> None:
    table = evaluation_table(Evaluation(3, {"chrf": Score("chrF", 60.25, None, None, "s")}))
    assert table == (["Metric", "Score"], [["chrF", "60.25"]])


def test_a_comparison_has_a_verdict_per_system() -> None:
    systems = {
        "base": {"bleu": system_score(20, None, None, None)},
        "good": {"bleu": system_score(25, 0.001, True, False)},
        "bad": {"bleu": system_score(15, 0.0494, False, True)},
        "same": {"bleu": system_score(20.1, 0.4, False, False)},
    }
    table = comparison_table(Comparison(3, "base", systems))
    assert table.header == ["Metric", "System", "Score", "95 % interval", "p", "Verdict"]
    assert table.rows == [
        ["BLEU", "base", "20.00", "19.00 to 21.00", "-", "baseline"],
        ["BLEU", "good", "25.00", "24.00 to 26.00", "0.001", "better"],
        ["BLEU", "bad", "15.00", "14.00 to 16.00", "0.049", "worse"],
        ["BLEU", "same", "20.10", "19.10 to 21.10", "0.400", "no clear difference"],
    ]


def test_a_comparison_goes_metric_by_metric(references: list[str]) -> None:
    table = comparison_table(compare({"a": references, "b": references}, references, samples=2))
    assert [row[:2] for row in table.rows] == [["BLEU", "a"], ["BLEU", "b"], ["chrF", "a"], ["chrF", "b"]]


def test_signatures_are_the_lines_of_the_sacrebleu_command(
    references: list[str], sacrebleu: Callable[..., str]
) -> None:
    options = ["-m", "bleu", "chrf", "ter", "--format", "text"]
    printed = [line.split(" = ")[0].strip() for line in sacrebleu(references, references, options=options).splitlines()]
    assert signatures(evaluate(references, references, intervals=False)) == printed


def test_signatures_of_a_comparison_come_once_per_metric(references: list[str]) -> None:
    lines = signatures(compare({"a": references, "b": references}, references, samples=2))
    assert [line.split("|")[0] for line in lines] == ["BLEU", "chrF2"]
    assert all("bs:2|seed:12345" in line for line in lines)


def test_lengths_are_counted_in_words_of_the_source() -> None:
    sources = ["", "w", "w " * 5, "w " * 6, "w " * 10, "w " * 21, "w " * 90]
    references = ["a b c d e"] * 7
    hypotheses = ["a b c d e"] * 3 + ["x"] * 2 + ["a b c d e"] * 2
    buckets = by_length(sources, hypotheses, references)
    assert [bucket.label for bucket in buckets] == ["1-5", "6-10", "11-20", "21+"]
    assert [bucket.sentences for bucket in buckets] == [2, 2, 0, 2]  # the empty source is in none
    assert [bucket.bleu for bucket in buckets] == [pytest.approx(100), 0, None, pytest.approx(100)]


def test_perfect_translations_of_three_words_are_perfect() -> None:
    (bucket,) = by_length(["w w w"], ["a b c"], ["a b c"], buckets=[(3, 3)])
    assert (bucket.label, bucket.bleu) == ("3", pytest.approx(100))


def test_one_bucket_for_all_is_the_bleu_of_the_corpus(
    references: list[str], spoil: Callable[[float, int], list[str]], sacrebleu: Callable[..., str]
) -> None:
    hypotheses = spoil(0.2, 2)
    (bucket,) = by_length(references, hypotheses, references, buckets=[(0, None)])
    printed = float(sacrebleu(references, hypotheses, options=["--score-only"]))
    assert (bucket.sentences, bucket.bleu) == (200, pytest.approx(printed, abs=1e-5))


def test_lengths_have_a_row_per_bucket() -> None:
    assert length_table([LengthBucket(1, 5, 12, 31.237), LengthBucket(6, None, 0, None)]) == (
        ["Source words", "Sentences", "BLEU"],
        [["1-5", "12", "31.24"], ["6+", "0", "-"]],
    )


def test_lengths_that_cannot_be_told_apart_are_named() -> None:
    with pytest.raises(InputError, match=r"1 sources, 2 hypotheses, 2 references"):
        by_length(["a"], ["a", "b"], ["a", "b"])
    with pytest.raises(ConfigError, match=r"bucket \(5, 1\) can hold no sentence"):
        by_length(["a"], ["a"], ["a"], buckets=[(5, 1)])
