"""Results as tables: means and spread over seeds beside the paper's numbers, and what holds of the claims."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from statistics import mean
from typing import Any

from claims.cases import BASE, CASES, CLAIMS, RECURRENT, TRANSFORMER, Claim
from results.scores import Scores, standard_error

__all__ = ["by_case", "claims_table", "final", "networks_table", "times_table", "variations_table"]

WIDTH = TRANSFORMER["d_model"]
ROUNDING = 0.1
"""Of seconds in results."""
Point = dict[str, float]
Result = dict[str, Any]


def by_case(results: Iterable[Result]) -> dict[str, list[Result]]:
    """Results by case, in the order of the cases, those of a case by seed."""
    known = list(results)
    found = {case.name: [result for result in known if result["case"] == case.name] for case in CASES}
    return {name: sorted(runs, key=lambda run: int(run["seed"])) for name, runs in found.items() if runs}


def final(runs: Sequence[Result], metric: str, steps: int) -> Scores:
    """Where each run has made its steps, or else ended."""
    return Scores([_at_step(run["curve"], steps)[metric] for run in runs])


def _at_step(curve: list[Point], steps: int) -> Point:
    return next((point for point in curve if point["step"] == steps), curve[-1])


def _after(curve: list[Point], seconds: float) -> Point:
    """The first point by which so much time had been spent, or else the last."""
    return next((point for point in curve if point["seconds"] >= seconds - ROUNDING), curve[-1])


def networks_table(found: dict[str, list[Result]], steps: int) -> list[list[str]]:
    """Transformer and recurrent network, with as many parameters: after as much time, and as many steps."""
    base, recurrent = found.get(BASE.name, []), found.get(RECURRENT.name, [])
    if not base or not recurrent:
        return []
    points = [_at_step(run["curve"], steps) for run in base]
    seconds = mean(point["seconds"] for point in points)
    rows = [["network", "compared at", "parameters", "steps", "CPU s", "BLEU", "perplexity"]]
    rows.append(_network_row("Transformer", "", base, points))
    rows.append(
        _network_row("recurrent", "equal time", recurrent, [_after(run["curve"], seconds) for run in recurrent])
    )
    if steps:
        at_step = [_at_step(run["curve"], steps) for run in recurrent]
        rows.append(_network_row("recurrent", "equal steps", recurrent, at_step))
    return rows


def _network_row(name: str, where: str, runs: list[Result], points: list[Point]) -> list[str]:
    def scores(metric: str) -> Scores:
        return Scores([point[metric] for point in points])

    return [
        name,
        where,
        f"{runs[0]['parameters']:,}",
        f"{scores('step').mean:,.0f}",
        f"{scores('seconds').mean:,.0f}",
        str(scores("bleu")),
        str(scores("perplexity")),
    ]


def variations_table(found: dict[str, list[Result]], steps: int) -> list[list[str]]:
    """Table 3: ours beside the paper's."""
    rows = [["case", "seeds", "BLEU", "perplexity", "paper's row", "its BLEU", "its perplexity"]]
    for case in CASES:
        if case.paper is None or case.name not in found:
            continue
        runs, (perplexity, bleu) = found[case.name], case.paper
        ours = [str(final(runs, metric, steps)) for metric in ("bleu", "perplexity")]
        rows.append([case.name, str(len(runs)), *ours, case.row, f"{bleu:.1f}", f"{perplexity:.2f}"])
    return rows


def times_table(times: Sequence[dict[str, Any]]) -> list[list[str]]:
    """Table 1: milliseconds of a forward and backward pass; steps that must follow one another in brackets."""
    if not times:
        return []
    names = [name for name in times[0] if name != "length"]
    rows = [["length n", *names, "operations by the paper, n²·d / n·d²"]]
    for row in times:
        n = row["length"]
        sequential = ["1", f"{n:,}", f"{2 * 2}", f"{2 * n:,}"]
        cells = [f"{row[name]:.2f} ms ({steps})" for name, steps in zip(names, sequential, strict=True)]
        rows.append([f"{n}", *cells, f"{n / WIDTH:.2f}"])
    return rows


def claims_table(found: dict[str, list[Result]], times: Sequence[dict[str, Any]], steps: int) -> list[list[str]]:
    """What the paper says, and what comes out here."""
    rows = [["claim", "paper", "here", "at this size"]]
    base, recurrent = found.get(BASE.name, []), found.get(RECURRENT.name, [])
    if base and recurrent:
        points = [_at_step(run["curve"], steps) for run in base]
        seconds = mean(point["seconds"] for point in points)
        pairs = {"time": [_after(run["curve"], seconds) for run in recurrent]}
        if steps:
            pairs["steps"] = [_at_step(run["curve"], steps) for run in recurrent]
        for what, theirs in pairs.items():
            ours = Scores([point["bleu"] for point in points]), Scores([point["bleu"] for point in theirs])
            words = f"The Transformer beats the recurrent network after equal {what}"
            rows.append([words, "27.3 against 24.6 (GNMT)", f"{ours[0]} against {ours[1]}", _verdict("worse", *ours)])
    if times:
        faster = [row["length"] for row in times if row["self-attention layer"] < row["recurrent layer"]]
        short = [row["length"] for row in times if row["length"] < WIDTH]
        words = f"A self-attention layer is faster than a recurrent one while n < d = {WIDTH}"
        here = f"faster at n = {', '.join(map(str, faster))}" if faster else "at no length"
        rows.append(
            [words, "n²·d against n·d² operations", here, "holds" if set(short) <= set(faster) else "does not hold"]
        )
    papers = {case.name: case.paper for case in CASES if case.paper}
    for claim in CLAIMS:
        if claim.case in found and base:
            ours = final(base, claim.metric, steps), final(found[claim.case], claim.metric, steps)
            index = ("perplexity", "bleu").index(claim.metric)
            paper = f"{papers[BASE.name][index]} → {papers[claim.case][index]}"
            unit = "" if claim.metric == "bleu" else " (perplexity)"
            rows.append([claim.words, paper + unit, f"{ours[0]} → {ours[1]}", _verdict_of(claim, *ours)])
    return rows if len(rows) > 1 else []


def _verdict_of(claim: Claim, base: Scores, other: Scores) -> str:
    if claim.metric == "perplexity":  # lower is better
        base, other = Scores([-value for value in base.values]), Scores([-value for value in other.values])
    return _verdict(claim.expected, base, other)


def _verdict(expected: str, base: Scores, other: Scores) -> str:
    """Whether a difference is as expected and more than twice its standard error."""
    if min(len(base.values), len(other.values)) < 2:
        return "one seed decides nothing"
    difference = other.mean - base.mean
    if abs(difference) <= 2 * standard_error(base, other):
        return "holds" if expected == "equal" else "within the spread"
    if expected == "equal":
        return f"does not hold: {'better' if difference > 0 else 'worse'} by {abs(difference):.2f}"
    return "holds" if (difference > 0) == (expected == "better") else "the other way round"
