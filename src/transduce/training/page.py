"""A training run as one self-contained page: curves, scores, and how translations came to be."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from transduce.training.log import read_log

__all__ = ["training_page"]

WIDTH, HEIGHT, LEFT, BOTTOM = 560, 220, 52, 28
MOST_POINTS = 400
"""Points drawn of a curve; more cannot be told apart."""

NAMES = {"bleu": "BLEU", "chrf": "chrF", "f1": "F1", "accuracy": "Accuracy", "perplexity": "Perplexity", "loss": "Loss"}
"""Scores, the most telling first."""
SMALLER_IS_BETTER = ("perplexity", "loss")

Point = tuple[float, float]


def training_page(title: str, log: Path) -> str:
    """HTML of a run's log; needs nothing but the browser that opens it."""
    events = read_log(log)
    steps = [event for event in events if event["event"] == "Stepped" and math.isfinite(event["loss"])]
    checks = [event for event in events if event["event"] == "Validated"]
    means = [event for event in events if event["event"] == "Averaged"]
    charts = [
        _chart("Training loss per token", [(event["step"], event["loss"]) for event in _thinned(steps)]),
        *(
            _chart(f"{name} on the dev set", [(event["step"], event["scores"][key]) for event in checks])
            for key, name in NAMES.items()
            if checks and key in _shown(checks[0]["scores"])
        ),
        _chart("Learning rate", [(event["step"], event["rate"]) for event in _thinned(steps)]),
    ]
    return PAGE.format(
        title=html.escape(title),
        summary=_summary(steps, checks, means),
        charts="".join(charts),
        samples=_samples(checks),
    )


def _shown(scores: dict[str, float]) -> list[str]:
    """Perplexity says the same as loss, in numbers that people know."""
    return [key for key in scores if key != "loss" or "perplexity" not in scores]


def _score(key: str, value: float) -> str:
    return _number(value) if key in SMALLER_IS_BETTER else f"{value:.1f}"


def _thinned(steps: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Means over equal stretches: single steps jump about, and thousands cannot be drawn."""
    size = max(1, len(steps) // MOST_POINTS)
    stretches = [steps[start : start + size] for start in range(0, len(steps), size)]
    return [
        {key: sum(event[key] for event in stretch) / len(stretch) for key in ("step", "loss", "rate")}
        for stretch in stretches
    ]


def _summary(steps: list[dict[str, Any]], checks: list[dict[str, Any]], means: list[dict[str, Any]]) -> str:
    if not steps:
        return "No step has been made yet."
    tokens, seconds = sum(event["tokens"] for event in steps), steps[-1]["seconds"]
    words = f"{len(steps):,} steps, {tokens:,} target tokens, {seconds / 60:.1f} minutes"
    if checks:
        key = next(key for key in NAMES if key in checks[0]["scores"])
        better = min if key in SMALLER_IS_BETTER else max
        best = better(checks, key=lambda event: float(event["scores"][key]))
        words += f"; best {NAMES[key]} {_score(key, best['scores'][key])} at step {best['step']:,}"
        if means:
            mean, count = means[-1]["scores"][key], len(means[-1]["steps"])
            words += f"; {NAMES[key]} {_score(key, mean)} of the mean of {count} snapshots"
    return html.escape(words + ".")


def _chart(title: str, points: Sequence[Point]) -> str:
    """One curve as SVG, with a title that says its last value."""
    if not points:
        return ""
    xs, ys = [x for x, _ in points], [y for _, y in points]
    low, high = min(0.0, min(ys)), max(ys) or 1.0
    first, last = min(xs), max(xs)

    def place(x: float, y: float) -> str:
        across = LEFT + (WIDTH - LEFT - 8) * (x - first) / ((last - first) or 1)
        down = 8 + (HEIGHT - BOTTOM - 8) * (1 - (y - low) / ((high - low) or 1))
        return f"{across:.1f},{down:.1f}"

    grid = []
    for share in (0, 0.5, 1):
        value = low + share * (high - low)
        height = place(first, value).split(",")[1]
        grid.append(f'<line x1="{LEFT}" x2="{WIDTH - 8}" y1="{height}" y2="{height}"/>')
        grid.append(f'<text x="{LEFT - 6}" y="{float(height) + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    ends = f'<text x="{LEFT}" y="{HEIGHT - 8}">step {first:,.0f}</text>'
    ends += f'<text x="{WIDTH - 8}" y="{HEIGHT - 8}" text-anchor="end">step {last:,.0f}</text>'
    dots = "".join(
        f'<circle r="3" cx="{place(x, y).split(",")[0]}" cy="{place(x, y).split(",")[1]}">'
        f"<title>step {x:,.0f}: {_number(y)}</title></circle>"
        for x, y in (points if len(points) <= 60 else [])
    )
    curve = " ".join(place(x, y) for x, y in points)
    name = html.escape(title)
    return (
        f"<figure><figcaption>{name}: {_number(ys[-1])}</figcaption>"
        f'<svg viewBox="0 0 {WIDTH} {HEIGHT}" role="img" aria-label="{name}">'
        f'<g class="grid">{"".join(grid)}{ends}</g><polyline points="{curve}"/>{dots}</svg></figure>'
    )


def _number(value: float) -> str:
    if value == 0:
        return "0"
    return f"{value:.1e}" if abs(value) < 0.01 else f"{value:,.2f}" if abs(value) < 100 else f"{value:,.0f}"


def _samples(checks: list[dict[str, Any]]) -> str:
    """How each sample sentence was translated, validation by validation."""
    count = min((len(event["samples"]) for event in checks), default=0)
    parts = []
    for index in range(count):
        first = checks[0]["samples"][index]
        written = [(event["step"], html.escape(event["samples"][index]["translation"])) for event in checks]
        rows = "".join(f"<tr><td>{step:,}</td><td dir=auto>{text}</td></tr>" for step, text in written)
        parts.append(
            f"<h2 dir=auto>{html.escape(first['source'])}</h2>"
            f"<p dir=auto>Reference: {html.escape(first['reference'])}</p>"
            f"<table><tr><th>step</th><th>translation</th></tr>{rows}</table>"
        )
    return "".join(parts)


PAGE = """<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}: training</title>
<style>
:root {{ color-scheme: light dark; --ink: #1f2937; --paper: #ffffff; --faint: #d1d5db; --curve: #1d4ed8; }}
@media (prefers-color-scheme: dark) {{
  :root {{ --ink: #e5e7eb; --paper: #111827; --faint: #374151; --curve: #93c5fd; }}
}}
body {{ font: 16px/1.5 system-ui, sans-serif; color: var(--ink); background: var(--paper); margin: 2rem auto;
  max-width: 75rem; padding: 0 1rem; }}
.charts {{ display: grid; grid-template-columns: repeat(auto-fit, minmax(20rem, 1fr)); gap: 1.5rem; }}
figure {{ margin: 0; }}
figcaption {{ font-weight: 600; }}
svg {{ width: 100%; height: auto; }}
polyline {{ fill: none; stroke: var(--curve); stroke-width: 2; }}
circle {{ fill: var(--curve); }}
.grid line {{ stroke: var(--faint); }}
.grid text {{ fill: var(--ink); font-size: 12px; }}
h2 {{ font-size: 1.1rem; margin: 2rem 0 0; }}
td, th {{ text-align: start; padding: 0.1rem 1rem 0.1rem 0; vertical-align: top; }}
</style>
</head>
<body>
<h1>{title}</h1>
<p>{summary}</p>
<div class="charts">{charts}</div>
{samples}
</body>
</html>
"""
