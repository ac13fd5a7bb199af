"""A text file in, its translation out, line by line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from transduce import Translator


@pytest.fixture
def files(desk: Page) -> Page:
    desk.get_by_role("tab", name="File").click()
    return desk


def choose(page: Page, name: str, content: bytes) -> None:
    page.locator("#file").set_input_files({"name": name, "mimeType": "text/plain", "buffer": content})


def downloaded(page: Page) -> tuple[str, bytes]:
    with page.expect_download() as download:
        page.get_by_role("link", name="Download").click()
    return download.value.suggested_filename, Path(download.value.path()).read_bytes()


def test_a_file_is_translated_line_by_line_with_its_line_ends(files: Page) -> None:
    lines = ["Thank you.", "", "Where is the station? I am hungry.", "   "]
    choose(files, "notes.txt", "\r\n".join(lines).encode() + b"\r\nGood night.")
    name, content = downloaded(files)
    translator = Translator.load("en-de")
    first, third, last = (translator.translate(each).text for each in (lines[0], lines[2], "Good night."))
    assert name == "notes.de.txt"
    assert content.decode() == f"{first}\r\n\r\n{third}\r\n\r\n{last}"
    expect(files.locator(".file-card .number")).to_have_text("5 of 5 lines")
    expect(files.locator(".sample p").last).to_have_text(last)


def test_a_long_file_goes_in_requests_of_the_size_that_the_server_takes(page: Page, small_service: Any) -> None:
    asked: list[list[str]] = []
    page.on(
        "request", lambda request: asked.append(request.post_data_json["q"]) if "translate" in request.url else None
    )
    page.goto(small_service.url)
    page.get_by_role("tab", name="File").click()
    lines = ["Thank you very much for the coffee.", "Good night.", "I see.", "Go.", "Run.", "Stop.", "Wait."]
    choose(page, "notes.en", "\n".join(lines).encode() + b"\n")
    name, content = downloaded(page)
    assert name == "notes.de"
    assert len(content.decode().split("\n")) == len(lines) + 1
    assert [line for texts in asked for line in texts] == lines
    assert max(map(len, asked)) == 3
    assert all(sum(map(len, texts)) <= 60 for texts in asked)


def test_a_file_can_be_dropped(files: Page) -> None:
    files.evaluate(
        """() => {
            const data = new DataTransfer();
            data.items.add(new File(["Thank you.\\n"], "dropped.txt", { type: "text/plain" }));
            const zone = document.querySelector(".drop-zone");
            zone.dispatchEvent(new DragEvent("dragover", { bubbles: true, dataTransfer: data }));
            zone.dispatchEvent(new DragEvent("drop", { bubbles: true, dataTransfer: data }));
        }"""
    )
    assert downloaded(files)[0] == "dropped.de.txt"


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ("Grüße".encode("latin-1"), "notes.txt is not UTF-8 text. Save it as UTF-8"),
        ("Thank you.".encode("utf-16"), "is not UTF-8 text"),
        (b"PNG\0\0\1", "notes.txt is not a text file."),
        (b" \n\n", "notes.txt is empty."),
        (b"Thank you.\n" + b"a " * 3000, "Line 2 has 6,000 characters; this server takes 5,000 at a time."),
    ],
)
def test_files_that_cannot_be_translated_are_refused_with_a_reason(files: Page, content: bytes, words: str) -> None:
    choose(files, "notes.txt", content)
    expect(files.locator(".file-work").get_by_role("alert")).to_contain_text(words)


def test_it_can_be_cancelled(files: Page) -> None:
    held: list[Route] = []
    files.route("**/v1/translate", lambda route: held.append(route))
    with files.expect_request("**/v1/translate"):
        choose(files, "notes.txt", b"Thank you.\n")
    expect(files.get_by_role("progressbar")).to_be_visible()
    with files.expect_event("requestfailed"):
        files.get_by_role("button", name="Cancel").click()
    expect(files.locator(".file-work")).to_contain_text("cancelled")
    expect(files.get_by_role("progressbar")).to_have_count(0)


def test_when_the_server_is_busy_it_waits_and_goes_on(page: Page, trouble: Any, busy_service: Any) -> None:
    trouble.expect("429")
    page.goto(busy_service.url)
    page.get_by_role("tab", name="File").click()
    busy_service.use_up()
    choose(page, "notes.txt", b"Go.\n" * 2)
    expect(page.locator(".file-card").get_by_role("status")).to_contain_text("at most 12 a minute. Goes on in")
    _, content = downloaded(page)
    assert content.decode().count("\n") == 2
    assert "" not in content.decode().split("\n")[:-1]
