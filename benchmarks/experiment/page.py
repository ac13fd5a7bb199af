"""The curves of all runs on one self-contained page, over the table of what came out."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

from experiment.grid import Grid, Run
from experiment.places import Places
from experiment.tables import Rows, description, notes
from experiment.texts import Texts
from results.tables import html_table
from transduce.training.log import read_log

__all__ = ["curves_page"]

STATIC = Path(__file__).parent / "static"


def curves_page(grid: Grid, places: Places, texts: Texts, rows: Rows) -> str:
    """HTML that needs nothing but the browser that opens it; of runs that are not complete it shows what there is."""
    plain = [[cell.replace("`", "") for cell in row] for row in rows]
    title = places.directory.resolve().name
    return (
        (STATIC / "page.html")
        .read_text(encoding="utf-8")
        .format(
            title=html.escape(title),
            description=html.escape(description(grid, texts)),
            style=(STATIC / "page.css").read_text(encoding="utf-8"),
            script=(STATIC / "curves.js").read_text(encoding="utf-8"),
            data=json.dumps(curves(grid, places), ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c"),
            table=html_table(plain) if rows else "<p>No run is complete yet.</p>",
            notes=html.escape(notes(grid, places, texts)),
        )
    )


def curves(grid: Grid, places: Places) -> list[dict[str, Any]]:
    """By variant, the validations of its runs that have any."""
    runs = grid.runs()
    variants = [
        {
            "name": name,
            "settings": " ".join(settings),
            "runs": [
                {"seed": run.seed, "points": points}
                for run in runs
                if run.variant == name and (points := _points(places, run))
            ],
        }
        for name, settings in grid.all_variants()
    ]
    return [variant for variant in variants if variant["runs"]]


def _points(places: Places, run: Run) -> list[dict[str, float]]:
    log = places.events(run)
    checks = [event for event in read_log(log) if event["event"] == "Validated"] if log.is_file() else []
    return [
        {"step": event["step"], "minutes": round(event["seconds"] / 60, 3)}
        | {name: round(value, 3) for name, value in event["scores"].items()}
        for event in checks
    ]
