"""The curves of an experiment, as a person looks at them: a saved page in a real browser."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest
from playwright.sync_api import Page, expect

sys.path.insert(0, str(Path(__file__).parents[2] / "benchmarks"))

from experiment.grid import load_grid
from experiment.page import curves_page
from experiment.places import Places
from experiment.texts import find_texts

GRID = """
corpus: tatoeba-en-de
recipe: small-corpus
variants: {base: [], "<b>dropout": model.dropout=0.3}
seeds: 2
budget: {steps: 300}
"""


@pytest.fixture
def curves(page: Page, tmp_path: Path) -> Page:
    """Two variants with two seeds each, on a page that is opened as a file; one run has not been validated yet."""
    (tmp_path / "grid.yaml").write_text(GRID)
    grid, places = load_grid(tmp_path / "grid.yaml"), Places(tmp_path)
    for number, run in enumerate(grid.runs()):
        places.model(run).mkdir(parents=True)
        scores = [{"bleu": number + 10.0 * part, "chrf": 40.0, "perplexity": 90.0 / part} for part in (1, 2, 3)]
        checks = [
            {"event": "Validated", "step": 100 * part, "seconds": 60.0 * part * (number + 1), "scores": each}
            for part, each in enumerate(scores, start=1)
        ]
        shown = checks if number < 3 else []
        places.events(run).write_text("".join(json.dumps(check) + "\n" for check in shown))
    texts = find_texts(grid, tmp_path, tmp_path)
    (tmp_path / "report.html").write_text(curves_page(grid, places, texts, []), encoding="utf-8")
    page.goto((tmp_path / "report.html").as_uri())
    return page


def test_every_run_has_a_curve_and_names_hide_them(curves: Page) -> None:
    lines = curves.locator("#chart .curve")
    expect(lines).to_have_count(3)
    name = curves.get_by_role("button", name="<b>dropout")
    expect(name).to_have_attribute("aria-pressed", "true")
    name.click()
    expect(name).to_have_attribute("aria-pressed", "false")
    expect(lines).to_have_count(2)
    name.click()
    expect(lines).to_have_count(3)


def test_choices_say_what_is_drawn(curves: Page) -> None:
    chart = curves.get_by_role("img")
    expect(chart).to_have_accessible_name("BLEU on the dev set against minutes of training")
    curves.get_by_role("button", name="Steps").click()
    curves.get_by_role("button", name="Perplexity").click()
    expect(chart).to_have_accessible_name("Perplexity on the dev set against steps")
    expect(chart).to_contain_text("300")
    curves.get_by_role("button", name="Mean").click()
    expect(curves.locator("#chart .curve")).to_have_count(2)
    expect(curves.locator("#chart .band")).to_have_count(1)
    curves.get_by_role("button", name="Close-up").click()
    expect(curves.locator("#chart .curve")).to_have_count(2)


def test_pointing_at_a_curve_says_whose_it_is(curves: Page) -> None:
    curves.get_by_role("button", name="Steps").click()
    dot = curves.locator("#chart [data-index='1'] .dot")
    dot.hover(force=True)  # what marks it is drawn over it
    expect(curves.locator("#tip")).to_have_text("<b>dropout, seed 1\nBLEU 31.00\nstep 300, 6.0 minutes")
    expect(curves.locator("#chart .dim")).to_have_count(2)


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_everyone_can_use_it(curves: Page, axe: Callable[[Page], list[str]], scheme: Literal["light", "dark"]) -> None:
    curves.emulate_media(color_scheme=scheme)
    assert axe(curves) == []


def test_the_page_can_be_dark(curves: Page) -> None:
    before = curves.evaluate("getComputedStyle(document.body).backgroundColor")
    curves.get_by_role("button", name="Dark").click()
    assert curves.evaluate("getComputedStyle(document.body).backgroundColor") != before
