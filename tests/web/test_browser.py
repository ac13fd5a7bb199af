"""The watch over pages notices what it is there to notice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page


@pytest.mark.parametrize(
    ("body", "seen"),
    [
        ("<script>console.error('a complaint')</script>", "console: a complaint"),
        ("<script>nothing.there()</script>", "error: nothing is not defined"),
        ("<img src='missing.png'>", "missing.png"),
        ("<img src='http://elsewhere.invalid/picture.png'>", "left the machine: http://elsewhere.invalid/picture.png"),
    ],
)
def test_trouble_is_noticed(page: Page, trouble: Any, tmp_path: Path, body: str, seen: str) -> None:
    (tmp_path / "page.html").write_text(f"<!doctype html><title>page</title>{body}", encoding="utf-8")
    page.goto((tmp_path / "page.html").as_uri())
    assert any(seen in each for each in trouble.found)
    with pytest.raises(AssertionError):
        trouble.check()
    for each in trouble.found:
        trouble.expect(each)


def test_expected_trouble_that_does_not_come_is_noticed(trouble: Any) -> None:
    trouble.expect("a complaint")
    with pytest.raises(AssertionError, match="did not happen"):
        trouble.check()


def test_axe_finds_what_is_seriously_wrong(page: Page, axe: Callable[[Page], list[str]]) -> None:
    page.goto("data:text/html,<html lang=en><title>a</title><main><h1>a</h1><button></button></main></html>")
    assert [each.split(":")[0] for each in axe(page)] == ["button-name"]
    page.goto("data:text/html,<html lang=en><title>a</title><main><h1>a</h1><button>b</button></main></html>")
    assert axe(page) == []
