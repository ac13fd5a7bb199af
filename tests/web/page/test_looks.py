"""For every eye, ear and screen: contrast and names (axe), phones, light and dark."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

SENTENCE = "My sister works in a hospital. Where is the station?"


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_any_view(desk: Page, axe: Callable[[Page], list[str]], theme: Any) -> None:
    desk.emulate_media(color_scheme=theme)
    assert axe(desk) == []
    desk.locator("#source").fill(SENTENCE)
    desk.get_by_role("button", name="Schwester", exact=True).click()
    expect(desk.locator("#word-panel .shares li")).not_to_have_count(0)
    expect(desk.locator("#other-ways .alternative")).not_to_have_count(0)
    assert axe(desk) == []
    for tab in ("File", "Lens", "Model"):
        desk.get_by_role("tab", name=tab).click()
        if tab == "File":
            file = {"name": "notes.txt", "mimeType": "text/plain", "buffer": b"Thank you.\n"}
            desk.locator("#file").set_input_files(file)
            expect(desk.get_by_role("link", name="Download")).to_be_visible()
        if tab == "Lens":
            expect(desk.locator(".stage canvas").first).to_be_visible()
        assert axe(desk) == [], tab
    desk.get_by_role("button", name="Options").click()
    assert axe(desk) == []


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_axe_finds_nothing_serious_in_notices(page: Page, axe: Any, small_service: Any, theme: Any) -> None:
    page.emulate_media(color_scheme=theme)
    page.goto(small_service.url)
    page.locator("#source").fill("too long " * 20)
    expect(page.locator(".notice")).to_be_visible()
    assert axe(page) == []
    for kind in ("busy", "key", "missing"):
        page.evaluate(
            """async kind => {
                const { Notices } = await import("/static/notices.js");
                const notices = new Notices(document.getElementById("notices"), () => {});
                notices.show({ kind, message: "A message.", wait: 60 }, () => {});
            }""",
            kind,
        )
        expect(page.locator(f".notice[data-kind={kind}]")).to_be_visible()
        assert axe(page) == [], kind


def test_a_phone_needs_no_sideways_scrolling(desk: Page) -> None:
    desk.set_viewport_size({"width": 390, "height": 844})
    desk.locator("#source").fill(SENTENCE + " " + "Donaudampfschifffahrtsgesellschaft" * 4)
    desk.get_by_role("button", name="Schwester", exact=True).click()
    expect(desk.locator("#word-panel .shares li")).not_to_have_count(0)
    for tab in ("Text", "File", "Lens", "Model"):
        desk.get_by_role("tab", name=tab).click()
        if tab == "Lens":
            expect(desk.locator(".stage canvas").first).to_be_visible()
        assert desk.evaluate("document.documentElement.scrollWidth") <= 390, tab
    desk.get_by_role("tab", name="Text").click()
    panes = [desk.locator(pane).bounding_box() for pane in (".source-pane", ".target-pane")]
    assert panes[0]["y"] + panes[0]["height"] <= panes[1]["y"] + 1


def test_the_marks_lie_on_the_words(desk: Page) -> None:
    """The mirror and the textarea wrap alike, or marks would stand beside their words."""
    for width in (1280, 800, 390):
        desk.set_viewport_size({"width": width, "height": 900})
        desk.locator("#source").fill(SENTENCE * 3 + "\n\n" + "x" * 90)
        for measure in ("scrollHeight", "clientWidth"):  # once the page has followed the window, which takes a frame
            same = (
                "measure => document.querySelector('#source')[measure] === document.querySelector('#mirror')[measure]"
            )
            desk.wait_for_function(same, arg=measure)


def test_dark_is_dark_and_light_is_light_whatever_the_system_says(desk: Page) -> None:
    def brightness() -> float:
        colour = desk.evaluate("getComputedStyle(document.body).backgroundColor")
        return sum(int(part) for part in colour[4:-1].split(",")[:3]) / 3

    desk.emulate_media(color_scheme="dark")
    assert brightness() < 40
    desk.emulate_media(color_scheme="light")
    assert brightness() > 220
    desk.get_by_role("button", name="Options").click()
    desk.get_by_label("Theme").select_option("dark")
    assert brightness() < 40
    desk.emulate_media(color_scheme="dark")
    desk.get_by_label("Theme").select_option("light")
    assert brightness() > 220
