"""The page of a run: one file, no network, nothing unescaped, every validation in it."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
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


@pytest.fixture
def page(tmp_path: Path) -> str:
    events = [stepped(step, 5 - step / 500) for step in range(1, 1001)]
    events += [validated(500, 11.0, "halo"), stepped(500, 4.0), validated(1000, 22.5, "<script>alert(1)</script>")]
    lines = [json.dumps(event) for event in events]
    (tmp_path / "log.jsonl").write_text("\n".join(lines) + '\n{"event": "Stepp', encoding="utf-8")  # cut off by a kill
    return training_page("my <model>", tmp_path / "log.jsonl")


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
    assert "1,000 steps, 10,000 target tokens, 33.3 minutes; best BLEU 22.5 at step 1,000." in page
    assert "step 500: 11.00" in page
    assert page.count("<svg") == 5


def test_a_long_curve_is_thinned(page: str) -> None:
    curve = re.search(r'Training loss.*?points="([^"]*)"', page, flags=re.DOTALL)
    assert curve is not None
    assert 300 < len(curve.group(1).split()) <= 500


def test_a_run_without_steps_has_a_page_too(tmp_path: Path) -> None:
    (tmp_path / "log.jsonl").write_text("")
    assert "No step has been made yet." in training_page("model", tmp_path / "log.jsonl")
