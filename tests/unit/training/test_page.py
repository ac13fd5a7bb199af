"""The page of a run: one file, no network, nothing unescaped, every validation in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from transduce.training.page import training_page


def stepped(step: int, loss: float) -> dict[str, Any]:
    return {"event": "Stepped", "step": step, "loss": loss, "rate": 0.001, "tokens": 10, "seconds": step * 2.0}


def validated(step: int, bleu: float, translation: str) -> dict[str, Any]:
    scores = {"bleu": bleu, "chrf": 2 * bleu, "loss": 1.0, "perplexity": 2.7}
    sample = {"source": "<b>hello</b>", "translation": translation, "reference": "hallo & du"}
    return {"event": "Validated", "step": step, "seconds": 1.0, "scores": scores, "better": True, "samples": [sample]}


MEAN = {"steps": [500, 1000], "scores": {"bleu": 23.4}}


@pytest.fixture
def page(tmp_path: Path) -> str:
    """Of a run that was killed after step 700, with step 500 as its last checkpoint, and in the middle of a line."""
    first = [stepped(step, 5 - step / 500) for step in range(1, 501)]
    first += [validated(500, 11.0, "halo"), *(stepped(step, 77.0) for step in range(501, 701))]
    second = [{"event": "Resumed", "step": 500, "damaged": []}]
    second += [stepped(step, 5 - step / 500) for step in range(501, 1001)]
    second += [validated(1000, 22.5, "<script>alert(1)</script>"), {"event": "Averaged", "step": 1000} | MEAN]
    lives = ["".join(json.dumps(event) + "\n" for event in life) for life in (first, second)]
    (tmp_path / "log.jsonl").write_text('{"event": "Stepp\n'.join(lives) + '{"event": "Fini', encoding="utf-8")
    return training_page("my <model>", tmp_path / "log.jsonl")


def curve(page: str, title: str) -> list[tuple[float, float]]:
    found = re.search(title + r'.*?points="([^"]*)"', page, flags=re.DOTALL)
    assert found is not None
    return [(float(x), float(y)) for x, y in (point.split(",") for point in found.group(1).split())]


def test_the_page_needs_no_network_and_runs_no_script(page: str) -> None:
    assert not re.search(r"https?://|src=|href=|<script|@import|url\(", page)


def test_texts_are_escaped(page: str) -> None:
    assert "&lt;b&gt;hello&lt;/b&gt;" in page
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page
    assert "my &lt;model&gt;" in page


def test_tags_are_balanced(page: str) -> None:
    class Balance(HTMLParser):
        open: list[str] = []  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: Any) -> None:
            if tag not in ("meta", "line", "polyline"):
                self.open.append(tag)

        def handle_endtag(self, tag: str) -> None:
            if tag not in ("line", "polyline"):
                assert self.open.pop() == tag

    parser = Balance()
    parser.feed(page)
    assert parser.open == []


def test_every_validation_and_a_summary_are_on_it(page: str) -> None:
    assert "1,000 steps, 10,000 target tokens, 33.3 minutes; best BLEU 22.5 at step 1,000; " in page
    assert "BLEU 23.4 of the mean of 2 snapshots." in page
    assert "step 500: 11.00" in page
    assert page.count("<svg") == 5


def test_a_long_curve_is_thinned(page: str) -> None:
    assert 300 < len(curve(page, "Training loss")) <= 500


def test_a_curve_goes_forward_only_and_shows_nothing_that_was_taken_back(page: str) -> None:
    """Points go down the page as the loss falls; the loss of 77 was before the kill."""
    loss = curve(page, "Training loss")
    assert loss == sorted(loss)
    assert all(later[0] > earlier[0] and later[1] > earlier[1] for earlier, later in pairwise(loss))
    assert [x for x, _ in curve(page, "BLEU on the dev set")] == [52.0, 552.0]


def test_a_loss_that_is_not_a_number_leaves_the_curve_whole(tmp_path: Path) -> None:
    events = [stepped(1, 3.0), stepped(2, float("nan")), stepped(3, 2.0)]
    (tmp_path / "log.jsonl").write_text("".join(json.dumps(event) + "\n" for event in events))
    page = training_page("model", tmp_path / "log.jsonl")
    assert "nan" not in page
    assert len(curve(page, "Training loss")) == 2


def test_a_run_without_steps_has_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("")
    assert "No step has been made yet." in training_page("model", tmp_path / "log.jsonl")
