"""Charts as SVG that follows the page's colours, light or dark."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass

__all__ = ["Series", "Shift", "curves", "shifts"]

WIDTH, HEIGHT, LEFT, RIGHT, TOP, BOTTOM = 560, 300, 56, 14, 30, 44
NAMES, ROW = 168, 34
"""Width of the names beside a chart of shifts, and the height of its rows."""


@dataclass(frozen=True)
class Series:
    """A curve; `style` is the class that colours it."""

    name: str
    style: str
    points: Sequence[tuple[float, float]]
    spread: Sequence[float] = ()
    """Of each point, up and down."""


@dataclass(frozen=True)
class Shift:
    """How far a case lies from the base model: ours, its uncertainty, and the paper's."""

    name: str
    ours: float
    error: float
    paper: float


def curves(title: str, across: str, up: str, series: Sequence[Series], logarithmic: bool = False) -> str:
    """Curves over a common axis, each named in the legend; logarithmic both ways if asked for."""
    xs = [x for each in series for x, _ in each.points]
    ys = [y for each in series for _, y in each.points]
    x_ticks = _powers(min(xs), max(xs), 2) if logarithmic else _ticks(0, max(xs))
    y_ticks = _powers(min(ys), max(ys), 10) if logarithmic else _ticks(0, max(ys))

    def share(value: float, ticks: Sequence[float]) -> float:
        low, high = min(ticks), max(ticks)
        if logarithmic:
            return math.log(value / low) / math.log(high / low)
        return (value - low) / (high - low)

    def place(x: float, y: float) -> tuple[float, float]:
        right, down = WIDTH - RIGHT, HEIGHT - BOTTOM
        return LEFT + (right - LEFT) * share(x, x_ticks), down - (down - TOP) * share(y, y_ticks)

    parts = []
    for tick in y_ticks:
        _, y = place(x_ticks[0], tick)
        parts.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH - RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>')
        parts.append(_text(LEFT - 6, y + 4, _number(tick), "end"))
    for tick in x_ticks:
        x, _ = place(tick, y_ticks[0])
        parts.append(_text(x, HEIGHT - BOTTOM + 16, _number(tick), "middle"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 8, across, "middle"))
    for number, each in enumerate(series):
        placed = [place(x, y) for x, y in each.points]
        for (at, value), error in zip(each.points, each.spread, strict=False):
            if error:
                (x, bottom), (_, top) = place(at, max(y_ticks[0], value - error)), place(at, value + error)
                ends = f'x1="{x:.1f}" x2="{x:.1f}" y1="{bottom:.1f}" y2="{top:.1f}"'
                parts.append(f'<line class="{each.style}" {ends}/>')
        line = " ".join(f"{x:.1f},{y:.1f}" for x, y in placed)
        parts.append(f'<polyline class="{each.style}" points="{line}"/>')
        for (x, y), (at, value) in zip(placed, each.points, strict=True):
            tip = f"<title>{html.escape(each.name)}, {_number(at)}: {value:,.2f} {html.escape(up)}</title>"
            parts.append(f'<circle class="{each.style}" r="3.5" cx="{x:.1f}" cy="{y:.1f}">{tip}</circle>')
        left = LEFT + number * (WIDTH - LEFT - RIGHT) / len(series)
        parts.append(f'<line class="{each.style}" x1="{left}" x2="{left + 18}" y1="12" y2="12"/>')
        parts.append(_text(left + 24, 16, each.name))
    return _figure(title, HEIGHT, "".join(parts))


def shifts(title: str, across: str, rows: Sequence[Shift]) -> str:
    """Each case's distance from the base model: a dot with its uncertainty for ours, a hollow one for the paper's."""
    bounds = [0.0, *(row.paper for row in rows)]
    bounds += [row.ours + sign * row.error for row in rows for sign in (-1, 1)]
    ticks = _ticks(min(bounds), max(bounds))
    height = TOP + len(rows) * ROW + BOTTOM

    def place(value: float) -> float:
        return NAMES + (WIDTH - RIGHT - NAMES) * (value - ticks[0]) / (ticks[-1] - ticks[0])

    parts = []
    for tick in ticks:
        style = "zero" if tick == 0 else "grid"
        x, bottom = place(tick), height - BOTTOM
        parts.append(f'<line class="{style}" x1="{x:.1f}" x2="{x:.1f}" y1="{TOP - 6}" y2="{bottom}"/>')
        parts.append(_text(x, bottom + 16, f"{tick:+g}" if tick else "0", "middle"))
    parts.append(_text((NAMES + WIDTH - RIGHT) / 2, height - 8, across, "middle"))
    for number, row in enumerate(rows):
        y = TOP + (number + 0.5) * ROW
        parts.append(_text(NAMES - 12, y + 4, row.name, "end"))
        ends = place(row.ours - row.error), place(row.ours + row.error)
        parts.append(f'<line class="ours" x1="{ends[0]:.1f}" x2="{ends[1]:.1f}" y1="{y - 5}" y2="{y - 5}"/>')
        tip = f"<title>here {row.ours:+.2f} ± {row.error:.2f}, paper {row.paper:+.2f}</title>"
        parts.append(f'<circle class="ours" r="5" cx="{place(row.ours):.1f}" cy="{y - 5}">{tip}</circle>')
        parts.append(f'<circle class="paper" r="5" cx="{place(row.paper):.1f}" cy="{y + 6}">{tip}</circle>')
    parts.append(f'<circle class="ours" r="5" cx="{NAMES + 6}" cy="11"/>' + _text(NAMES + 18, 15, "here"))
    parts.append(f'<circle class="paper" r="5" cx="{NAMES + 76}" cy="11"/>' + _text(NAMES + 88, 15, "paper"))
    return _figure(title, height, "".join(parts))


def _figure(title: str, height: float, drawing: str) -> str:
    name = html.escape(title)
    head = f'<svg viewBox="0 0 {WIDTH} {height}" role="img" aria-label="{name}">'
    return f"<figure><figcaption>{name}</figcaption>{head}{drawing}</svg></figure>"


def _text(x: float, y: float, words: str, anchor: str = "start") -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}">{html.escape(words)}</text>'


def _ticks(low: float, high: float) -> list[float]:
    """Four to eight round numbers that hold both."""
    span = (high - low) or 1.0
    unit = 10.0 ** math.floor(math.log10(span))
    step = next(unit * factor for factor in (0.2, 0.5, 1, 2, 5) if span / (unit * factor) <= 6)
    return [round(step * number, 6) for number in range(math.floor(low / step), math.ceil(high / step) + 1)]


def _powers(low: float, high: float, base: int) -> list[float]:
    first, last = math.floor(math.log(low, base) + 1e-9), math.ceil(math.log(high, base) - 1e-9)
    return [float(base) ** power for power in range(first, last + 1)]


def _number(value: float) -> str:
    return f"{value:,.0f}" if value >= 10 else f"{value:g}"
