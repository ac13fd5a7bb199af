"""The results for people: as markdown, and as one self-contained page with plots."""

from __future__ import annotations

import html
from collections.abc import Sequence
from statistics import mean, stdev
from typing import Any

from claims.cases import BASE, CASES, RECURRENT
from claims.charts import Series, Shift, curves, shifts
from claims.tables import Result, claims_table, final, networks_table, times_table, variations_table
from results.scores import standard_error
from results.tables import html_table, markdown_table

__all__ = ["claims_page", "markdown"]

Found = dict[str, list[Result]]
Rows = list[list[str]]

ABOUT = (
    "Mean ± standard deviation over seeds. A claim holds if the difference has the sign that the paper found and is "
    "more than twice its standard error; “within the spread” is less than that. Perplexities are per token of our own "
    "vocabulary, and ours is a far smaller corpus: compare directions, not numbers."
)


def _sections(found: Found, times: Sequence[dict[str, Any]], steps: int) -> list[tuple[str, str, Rows]]:
    return [
        ("What holds", ABOUT, claims_table(found, times, steps)),
        (
            "Transformer against recurrent network",
            "One recurrent layer each way, additive attention (Bahdanau et al., 2015), as many parameters. "
            "CPU time of training alone.",
            networks_table(found, steps),
        ),
        ("Table 3: variations", "Each for the same steps.", variations_table(found, steps)),
        (
            "Table 1: time against length",
            "A forward and backward pass on one thread, width 128: of one layer for one sentence, and of the whole "
            "networks above for eight; in brackets the steps that must follow one another.",
            times_table(times),
        ),
    ]


def markdown(found: Found, times: Sequence[dict[str, Any]], steps: int, how: str) -> str:
    """All tables."""
    parts = [f"# What the paper claims, at the size of a desk\n\n{how}\n"]
    for title, words, rows in _sections(found, times, steps):
        if rows:
            parts.append(f"## {title}\n\n{words}\n\n{markdown_table(rows)}")
    return "\n".join(parts)


def claims_page(found: Found, times: Sequence[dict[str, Any]], steps: int, how: str) -> str:
    """HTML that needs nothing but the browser that opens it."""
    charts = _learning(found) + _variations(found, steps) + _lengths(times)
    tables = "".join(
        f"<h2>{html.escape(title)}</h2><p>{html.escape(words)}</p>{html_table(rows)}"
        for title, words, rows in _sections(found, times, steps)
        if rows
    )
    return PAGE.format(how=html.escape(how), charts="".join(charts), tables=tables)


def _learning(found: Found) -> list[str]:
    """BLEU over time and over steps, means over seeds."""
    if not {BASE.name, RECURRENT.name} <= found.keys():
        return []
    charts = []
    for key, across in (("seconds", "CPU seconds of training"), ("step", "steps")):
        series = []
        for name, style in ((BASE.name, "ours"), (RECURRENT.name, "other")):
            points = list(zip(*(run["curve"] for run in found[name]), strict=False))
            line = [(mean(p[key] for p in seeds), mean(p["bleu"] for p in seeds)) for seeds in points]
            spread = [stdev(p["bleu"] for p in seeds) if len(seeds) > 1 else 0.0 for seeds in points]
            series.append(Series(name, style, [(0, 0), *line], [0.0, *spread]))
        charts.append(curves(f"BLEU over {across.split()[-1] if key == 'step' else 'time'}", across, "BLEU", series))
    return charts


def _variations(found: Found, steps: int) -> list[str]:
    """Table 3 as distances from the base model."""
    if BASE.name not in found or BASE.paper is None:
        return []
    rows: dict[str, list[Shift]] = {"bleu": [], "perplexity": []}
    for case in CASES:
        if case is BASE or case.paper is None or case.name not in found:
            continue
        for metric, paper, papers_base in zip(("perplexity", "bleu"), case.paper, BASE.paper, strict=True):
            one, other = final(found[BASE.name], metric, steps), final(found[case.name], metric, steps)
            error = 2 * standard_error(one, other)
            if metric == "bleu":
                shift = Shift(case.name, other.mean - one.mean, error, paper - papers_base)
            else:
                ours = 100 * (other.mean / one.mean - 1)
                shift = Shift(case.name, ours, 100 * error / one.mean, 100 * (paper / papers_base - 1))
            rows[metric].append(shift)
    if not rows["bleu"]:
        return []
    return [
        shifts(
            "Table 3: BLEU against the base model",
            "BLEU points (± twice the standard error); right is better",
            rows["bleu"],
        ),
        shifts(
            "Table 3: perplexity against the base model",
            "% (± twice the standard error); left is better",
            rows["perplexity"],
        ),
    ]


def _lengths(times: Sequence[dict[str, Any]]) -> list[str]:
    """Table 1."""
    if not times:
        return []
    pairs = [
        ("Table 1: ms of one layer, one sentence", ("self-attention layer", "recurrent layer")),
        ("Table 1: ms of whole networks, eight sentences", ("Transformer", "recurrent network")),
    ]
    return [
        curves(
            title,
            "sentence length",
            "ms, forward and backward",
            [
                Series(name, style, [(row["length"], row[name]) for row in times])
                for name, style in zip(names, ("ours", "other"), strict=True)
            ],
            logarithmic=True,
        )
        for title, names in pairs
    ]


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>What the paper claims, at the size of a desk</title>
<style>
:root {{ color-scheme: light dark; --ink: #1f2937; --paper: #ffffff; --faint: #e5e7eb; --ours: #1d4ed8;
  --other: #c2410c; --theirs: #6b7280; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e5e7eb; --paper: #111827; --faint: #374151; --ours: #93c5fd; --other: #fdba74; --theirs: #9ca3af; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }}
.charts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(min(28rem, 100%), 1fr)); gap: 2rem; }}
figure {{ margin: 0; }}
figcaption {{ font-weight: 600; margin-bottom: 0.3rem; }}
svg {{ width: 100%; height: auto; }}
svg text {{ fill: var(--ink); font-size: 12.5px; }}
line, polyline {{ fill: none; stroke-width: 2; }}
line.grid {{ stroke: var(--faint); stroke-width: 1; }}
line.zero {{ stroke: var(--ink); stroke-width: 1; }}
.ours {{ stroke: var(--ours); }}
.other {{ stroke: var(--other); }}
circle.ours {{ fill: var(--ours); }}
circle.other {{ fill: var(--other); }}
circle.paper {{ fill: var(--paper); stroke: var(--theirs); stroke-width: 2; }}
h2 {{ font-size: 1.2rem; margin: 2.5rem 0 0; }}
.wide {{ overflow-x: auto; }}
table {{ border-collapse: collapse; }}
td, th {{ text-align: start; padding: 0.2rem 1.2rem 0.2rem 0; vertical-align: top; font-variant-numeric: tabular-nums;
  border-bottom: 1px solid var(--faint); }}
</style>
</head>
<body>
<h1>What the paper claims, at the size of a desk</h1>
<p>{how}</p>
<div class="charts">{charts}</div>
{tables}
</body>
</html>
"""
