"""A real browser: the system's Chromium, and pages that must not complain or reach for the network."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, sync_playwright

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")
PLACES = (
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    "C:/Program Files/Google/Chrome/Application/chrome.exe",
    "C:/Program Files (x86)/Microsoft/Edge/Application/msedge.exe",
)
QUIET = [  # a browser that asks nobody anything of its own accord
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OURS = {"127.0.0.1", "localhost", "::1"}
MOST_SECONDS = 15


class Trouble:
    """What a page did that it should not have: errors on the console, requests that failed or left the machine."""

    def __init__(self) -> None:
        self.requests: list[str] = []
        """Every address that was asked for, in order."""
        self.found: list[str] = []
        self._expected: list[str] = []
        self._overlooked: list[tuple[str, ...]] = []

    def expect(self, words: str) -> None:
        """Let trouble pass whose description holds these words; a test that expects some must see some."""
        self._expected.append(words)

    def overlook(self, *words: str) -> None:
        """Say that what is described with all of these words is no trouble, whenever it happens: at the end, too."""
        self._overlooked.append(words)

    def watch(self, page: Page) -> None:
        """Write down from now on what a page does; for pages that a test opens by itself, too."""
        page.on("request", lambda request: self._requested(request.url))
        page.on("requestfailed", lambda request: self.found.append(f"failed: {request.url} {request.failure}"))
        page.on("pageerror", lambda error: self.found.append(f"error: {error}"))
        page.on(
            "console",
            lambda message: (
                self.found.append(f"console: {message.text} {message.location.get('url', '')}")
                if message.type in ("error", "warning")
                else None
            ),
        )

    def check(self) -> None:
        """Fail if there was trouble that nobody expected, or none where some was."""
        found = [each for each in self.found if not self._is_overlooked(each)]
        unexpected = [each for each in found if not any(words in each for words in self._expected)]
        assert unexpected == []
        missing = [words for words in self._expected if not any(words in each for each in found)]
        assert missing == [], "expected, but did not happen"

    def _is_overlooked(self, description: str) -> bool:
        return any(all(word in description for word in words) for words in self._overlooked)

    def _requested(self, url: str) -> None:
        self.requests.append(url)
        address = urlsplit(url)
        if address.scheme in ("http", "https", "ws", "wss") and address.hostname not in OURS:
            self.found.append(f"left the machine: {url}")


def chromium() -> str:
    """The browser's program."""
    found = next(filter(None, map(shutil.which, NAMES)), None) or next((p for p in PLACES if Path(p).exists()), None)
    if found is None:
        pytest.fail(
            "These tests need Chromium or Chrome: `apt install chromium`, `brew install --cask chromium`, "
            "or chrome from google.com/chrome.",
            pytrace=False,
        )
    return found


@pytest.fixture(scope="module")  # not longer: while it is there, a loop runs that asyncio in other tests would meet
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        launched = playwright.chromium.launch(executable_path=chromium(), args=QUIET)
        yield launched
        launched.close()


@pytest.fixture
def trouble() -> Trouble:
    """What the test's page does wrong; `trouble.expect("…")` where that is what the test is about."""
    return Trouble()


@pytest.fixture
def page(browser: Browser, trouble: Trouble) -> Iterator[Page]:
    """An empty tab; at the end there must have been no errors, failed requests or requests to other machines."""
    context = browser.new_context(viewport={"width": 1280, "height": 900}, reduced_motion="reduce")
    context.set_default_timeout(MOST_SECONDS * 1000)
    tab = context.new_page()
    trouble.watch(tab)
    yield tab
    context.close()
    trouble.check()


@pytest.fixture
def axe() -> Callable[[Page], list[str]]:
    """`axe(page)` gives what axe finds seriously or critically wrong for people with disabilities, in words."""

    def found(page: Page) -> list[str]:
        violations: list[dict[str, Any]] = Axe().run(page).response["violations"]
        return [
            f"{each['id']}: {each['help']} {[node['html'][:200] for node in each['nodes']]}"
            for each in violations
            if each["impact"] in ("serious", "critical")
        ]

    return found
