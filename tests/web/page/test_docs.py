"""The description of the API, for people."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect


def test_every_route_is_described(page: Page, service: Any, axe: Callable[[Page], list[str]]) -> None:
    page.goto(f"{service.url}/docs")
    page.wait_for_selector("#routes:not([aria-busy])")
    routes = page.locator(".docs-route h2").all_inner_texts()
    assert {"POST/translate", "GET/languages", "POST/v1/attention"} <= {route.replace(" ", "") for route in routes}
    translate = page.locator(".docs-route", has_text="/v1/translate")
    expect(translate).to_contain_text("whole number, 1 to 16")
    expect(page.locator(".docs-route").last).to_contain_text("Retry-After")
    assert axe(page) == []
