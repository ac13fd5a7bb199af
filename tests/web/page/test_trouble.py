"""When something is wrong, the page says what, does what it can, and loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Page, expect

SENTENCE = "Where is the station?"


def notice(page: Page, kind: str) -> Any:
    return page.locator(f".notice[data-kind={kind}]")


def test_a_server_that_is_gone_is_waited_for(page: Page, trouble: Any, serve: Callable[..., Any], axe: Any) -> None:
    trouble.expect("ERR_CONNECTION_REFUSED")
    service = serve()
    page.goto(service.url)
    page.locator("#source").fill(SENTENCE)
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    service.stop()
    page.locator(".word").first.click()
    panel = page.locator("#word-panel")
    expect(panel.get_by_role("alert")).to_have_text("The server does not answer.")
    panel.get_by_role("button", name="Try again").click()
    expect(panel.get_by_role("alert")).to_have_text("The server does not answer.")
    page.locator("#source").fill("Thank you.")
    expect(notice(page, "gone").get_by_role("alert")).to_contain_text("Your text is still here")
    expect(page.locator("#source")).to_have_value("Thank you.")
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    expect(page.locator("#written")).to_have_class("written outdated")
    expect(page.locator("#state")).to_have_text("Outdated")
    assert axe(page) == []
    serve(port=service.port)
    expect(notice(page, "back").get_by_role("status")).to_have_text("The server is back.")
    expect(page.locator("#written")).to_have_text("Danke.")
    expect(page.locator("#state")).to_be_empty()
    expect(page.locator(".notice")).to_have_count(0)


def test_a_text_that_is_too_long_is_not_sent(page: Page, small_service: Any) -> None:
    page.goto(small_service.url)
    page.locator("#source").fill(SENTENCE)
    expect(page.locator("#count")).to_have_text("21 / 60")
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.locator("#source").fill(f"{SENTENCE} {SENTENCE} {SENTENCE} 👍")
    expect(page.locator("#count")).to_have_text("67 / 60")
    expect(notice(page, "long").get_by_role("status")).to_contain_text("This server takes 60 characters at a time.")
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    assert asked == []
    page.locator("#source").fill("Thank you.")
    expect(page.locator("#written")).to_have_text("Danke.")
    expect(page.locator(".notice")).to_have_count(0)


def test_a_busy_server_is_asked_again_when_it_said_so(page: Page, trouble: Any, busy_service: Any) -> None:
    trouble.expect("429")
    page.goto(busy_service.url)
    expect(page.locator("#into")).to_have_value("de")
    busy_service.use_up()
    page.locator("#source").fill(SENTENCE)
    words = "at most 12 a minute. The page tries again by itself."
    expect(notice(page, "busy").get_by_role("status")).to_contain_text(words)
    expect(page.locator(".countdown")).to_contain_text("s")
    expect(page.locator("#source")).to_have_value(SENTENCE)
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    expect(page.locator(".notice")).to_have_count(0)


def test_what_takes_too_long_is_said(page: Page, trouble: Any, serve: Callable[..., Any]) -> None:
    trouble.expect("503")
    page.goto(serve("en-de", "--max-seconds", "0.000001").url)
    page.locator("#source").fill(SENTENCE)
    expect(page.locator(".notice")).to_contain_text("This takes longer than")
    expect(page.locator("#source")).to_have_value(SENTENCE)


@pytest.fixture(scope="module")
def locked_service(tmp_path_factory: pytest.TempPathFactory, start: Callable[..., Any]) -> Iterator[Any]:
    """One that asks for a key."""
    path = tmp_path_factory.mktemp("keys") / "keys"
    path.write_text("open-sesame\n", encoding="utf-8")
    running = start("en-de", "--api-key-file", str(path))
    yield running
    running.stop()


def test_a_key_is_asked_for_and_a_wrong_one_refused(page: Page, trouble: Any, locked_service: Any) -> None:
    trouble.expect("403")
    page.goto(locked_service.url)
    expect(notice(page, "key").get_by_role("alert")).to_have_text("This server asks for a key.")
    page.locator("#source").fill(SENTENCE)
    page.get_by_label("Key", exact=True).fill("wrong-key")
    page.get_by_role("button", name="Use it").click()
    expect(notice(page, "key").get_by_role("alert")).to_have_text("This key is not known here.")
    expect(page.locator("#source")).to_have_value(SENTENCE)
    page.get_by_label("Key", exact=True).fill("open-sesame")
    page.keyboard.press("Enter")
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    expect(page.locator(".notice")).to_have_count(0)
    kept = page.evaluate("[Object.values(sessionStorage), Object.values(localStorage)].map(String)")
    assert "open-sesame" in kept[0]
    assert "open-sesame" not in kept[1]


def test_a_key_is_remembered_if_wished_and_forgotten_if_wished(page: Page, locked_service: Any) -> None:
    page.goto(locked_service.url)
    page.get_by_label("Key", exact=True).fill("open-sesame")
    page.get_by_label("Remember it in this browser").check()
    page.get_by_role("button", name="Use it").click()
    other = page.context.new_page()  # has the browser's storage, but not the tab's
    other.goto(page.url)
    other.locator("#source").fill(SENTENCE)
    expect(other.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    expect(other.locator(".notice")).to_have_count(0)
    other.get_by_role("button", name="Options").click()
    other.get_by_role("button", name="Forget the key").click()
    expect(notice(other, "key")).to_be_visible()


def test_a_model_that_is_gone_is_said_and_another_one_offered(
    page: Page, trouble: Any, serve: Callable[..., Any]
) -> None:
    trouble.expect("404")
    service = serve("other=en-de")
    page.goto(service.url)
    expect(page.locator("#into")).to_have_value("de")
    service.stop()
    serve("en-de", port=service.port)
    page.locator("#source").fill(SENTENCE)
    expect(notice(page, "missing").get_by_role("alert")).to_contain_text("other")
    page.get_by_role("button", name="Try again").click()
    expect(page.locator("#written")).to_have_text("Wo ist der Bahnhof?")
    expect(page.locator(".notice")).to_have_count(0)
