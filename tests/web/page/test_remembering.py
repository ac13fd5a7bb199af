"""What the browser keeps between visits, and what it must never keep."""

from __future__ import annotations

from typing import Any

from playwright.sync_api import Browser, Page, expect

SECRET = "Where is the station?"


def test_choices_are_remembered_and_the_text_is_not(desk: Page) -> None:
    desk.locator("#source").fill(SECRET)
    expect(desk.locator(".word").first).to_be_visible()
    for chooser, language in (("From", "German"), ("Into", "French")):
        desk.get_by_label(chooser).select_option(language)
        expect(desk.locator("#written[aria-busy=false]")).to_be_visible()
    desk.get_by_role("button", name="Options").click()
    desk.get_by_label("Beam").select_option("2")
    expect(desk.locator("#written[aria-busy=false]")).to_be_visible()
    desk.get_by_label("Theme").select_option("dark")
    desk.get_by_role("button", name="Close").click()
    desk.get_by_role("tab", name="Model").click()
    kept = desk.evaluate("JSON.stringify([localStorage, sessionStorage])")
    assert "station" not in kept
    desk.reload()
    expect(desk.get_by_role("tab", name="Model")).to_have_attribute("aria-selected", "true")
    expect(desk.get_by_label("Into")).to_have_value("fr")
    expect(desk.locator(".card-name")).to_have_text("several")
    assert desk.evaluate("getComputedStyle(document.documentElement).colorScheme") == "dark"
    desk.get_by_role("button", name="Options").click()
    expect(desk.get_by_label("Beam")).to_have_value("2")
    expect(desk.locator("#source")).to_have_value("")


def test_what_is_spoilt_in_storage_is_not_believed(desk: Page) -> None:
    for spoilt in ["{", "null", '{"beam": "many", "alternatives": 99, "theme": "pink", "tab": 7, "model": "gone"}']:
        desk.evaluate("text => localStorage.setItem('transduce', text)", spoilt)
        desk.reload()
        desk.locator("#source").fill(SECRET)
        expect(desk.locator("#written")).to_have_text("Wo ist der Bahnhof?")


def test_the_page_works_where_nothing_may_be_stored(browser: Browser, service: Any, trouble: Any) -> None:
    page = browser.new_page()
    trouble.watch(page)
    page.add_init_script(
        "for (const name of ['localStorage', 'sessionStorage'])"
        " Object.defineProperty(window, name, { get() { throw new DOMException('denied', 'SecurityError'); } });"
    )
    page.goto(service.url)
    page.locator("#source").fill(SECRET)
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    page.close()
    trouble.check()
