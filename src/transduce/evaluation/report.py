"""Results as rows of text, for whoever draws the table, and BLEU by sentence length."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from transduce.errors import ConfigError
from transduce.evaluation.compare import Comparison, SystemScore
from transduce.evaluation.metrics import Evaluation
from transduce.evaluation.scorers import check_lines, scorer

__all__ = ["LengthBucket", "Table", "by_length", "comparison_table", "evaluation_table", "length_table", "signatures"]

INTERVAL = "95 % interval"
NOTHING = "-"


class Table(NamedTuple):
    """Cells ready to be drawn; every row is as long as the header."""

    header: list[str]
    rows: list[list[str]]


@dataclass(frozen=True)
class LengthBucket:
    """The sentences whose source has from `shortest` to `longest` words."""

    shortest: int
    longest: int | None
    """None: no limit."""
    sentences: int
    bleu: float | None
    """None if there is no such sentence."""

    @property
    def label(self) -> str:
        """Such as "6-10", "21+" or "3"."""
        if self.longest is None:
            return f"{self.shortest}+"
        return str(self.shortest) if self.longest == self.shortest else f"{self.shortest}-{self.longest}"


def evaluation_table(evaluation: Evaluation) -> Table:
    """A row per metric; intervals have a column if they were computed."""
    scores = evaluation.scores.values()
    if all(score.low is None for score in scores):
        return Table(["Metric", "Score"], [[score.name, _number(score.value)] for score in scores])
    rows = [[score.name, _number(score.value), _interval(score.low, score.high)] for score in scores]
    return Table(["Metric", "Score", INTERVAL], rows)


def comparison_table(comparison: Comparison) -> Table:
    """A row per metric and system, metric by metric, with the verdict of the paired test in words."""
    rows = []
    for metric in comparison.systems[comparison.baseline]:
        for system, scores in comparison.systems.items():
            score = scores[metric]
            interval = _interval(score.low, score.high)
            rows.append([score.name, system, _number(score.value), interval, _p_value(score), _verdict(score)])
    return Table(["Metric", "System", "Score", INTERVAL, "p", "Verdict"], rows)


def length_table(buckets: Sequence[LengthBucket]) -> Table:
    """A row per bucket of `by_length`."""
    rows = [[bucket.label, str(bucket.sentences), _number(bucket.bleu)] for bucket in buckets]
    return Table(["Source words", "Sentences", "BLEU"], rows)


def signatures(result: Evaluation | Comparison) -> list[str]:
    """A line per metric as the `sacrebleu` command prints it; it belongs under every table of scores."""
    if isinstance(result, Comparison):
        named = [(score.name, score.signature) for score in result.systems[result.baseline].values()]
    else:
        named = [(score.name, score.signature) for score in result.scores.values()]
    # The 2 is β, which sacreBLEU writes into the name and not into the signature.
    return [f"{'chrF2' if name == 'chrF' else name}|{signature}" for name, signature in named]


def by_length(
    sources: Sequence[str],
    hypotheses: Sequence[str],
    references: Sequence[str],
    buckets: Sequence[tuple[int, int | None]] = ((1, 5), (6, 10), (11, 20), (21, None)),
) -> list[LengthBucket]:
    """Corpus BLEU of short and of long sentences apart, by the words between spaces in the source.

    A sentence that no bucket covers, such as an empty one, is left out. Where no hypothesis of a bucket has four
    words, BLEU takes the longest n-grams there are; plain BLEU would be 0 even for perfect translations.
    """
    check_lines(sources=sources, hypotheses=hypotheses, references=references)
    for shortest, longest in buckets:
        if shortest < 0 or (longest is not None and longest < shortest):
            raise ConfigError(
                f"The bucket ({shortest}, {longest}) can hold no sentence.",
                remedy="Give the fewest words and the most words, or None for no limit.",
            )
    lengths = [len(source.split()) for source in sources]
    found = []
    for shortest, longest in buckets:
        inside = [i for i, words in enumerate(lengths) if shortest <= words and (longest is None or words <= longest)]
        bleu = None
        if inside:
            judge = scorer("bleu", effective_order=True, force=True)
            result = judge.corpus_score([hypotheses[i] for i in inside], [[references[i] for i in inside]])
            bleu = float(result.score)
        found.append(LengthBucket(shortest, longest, len(inside), bleu))
    return found


def _number(value: float | None) -> str:
    return NOTHING if value is None else f"{value:.2f}"


def _interval(low: float | None, high: float | None) -> str:
    return NOTHING if low is None else f"{_number(low)} to {_number(high)}"


def _p_value(score: SystemScore) -> str:
    return NOTHING if score.p_value is None else f"{score.p_value:.3f}"


def _verdict(score: SystemScore) -> str:
    if score.p_value is None:
        return "baseline"
    if score.better:
        return "better"
    return "worse" if score.worse else "no clear difference"
