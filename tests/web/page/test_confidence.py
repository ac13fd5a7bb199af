"""How far the translation can be trusted, under it; and what that means, for whoever asks."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from transduce import Translator
from transduce.bundle import Bundle, find_model
from transduce.confidence import Confidence

GOOD, BAD = "Where is the station?", "The fiduciary reallocation was postponed indefinitely."


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The built-in model, as confident as its tokens are probable."""
    copied = Path(shutil.copytree(find_model("en-de"), tmp_path_factory.mktemp("models") / "sure"))
    none = {"base": 0.0, "sentence_probability": 0.0, "length": 0.0, "odd_length": 0.0, "usual_ratio": 0.0}
    confidence = Confidence(token_probability=1.0, **none, shortest=1, longest=9)  # type: ignore[arg-type]
    Bundle.open(copied).calibrated(confidence, {"error": 0.021, "sentences": 300})
    return copied


@pytest.fixture(scope="module")
def translator(model: Path) -> Translator:
    return Translator.load(model)


@pytest.fixture(scope="module")
def confident(start: Any, model: Path) -> Iterator[Any]:
    running = start(str(model), "--requests-per-minute", "0")
    yield running
    running.stop()


@pytest.fixture
def sure(page: Page, confident: Any) -> Page:
    page.goto(confident.url)
    expect(page.locator("#into")).to_have_value("de")
    return page


def shown(confidence: float | None) -> str:
    assert confidence is not None
    return f"Confidence {confidence:.2f}"


def test_it_stands_under_the_translation_and_tells_what_it_means(sure: Page, translator: Translator) -> None:
    mark, meaning = sure.locator("#confidence"), sure.locator("#confidence-meaning")
    expect(mark).to_be_hidden()
    sure.locator("#source").fill(GOOD)
    confidence = translator.translate(GOOD).confidence
    expect(mark).to_have_text(shown(confidence))
    expect(mark).not_to_have_class("confidence low")
    share = mark.locator(".meter").evaluate("bar => bar.style.getPropertyValue('--share')")
    assert float(share) == pytest.approx(confidence, abs=0.001)
    expect(meaning).to_be_hidden()
    before = mark.bounding_box()
    mark.focus()
    sure.keyboard.press("Enter")
    expect(meaning).to_contain_text("% like a human’s translation (chrF).")
    expect(mark).to_have_attribute("aria-expanded", "true")
    assert mark.bounding_box() == before  # it stays under the pointer
    mark.click()
    expect(meaning).to_be_hidden()
    sure.locator("#clear").click()
    expect(mark).to_be_hidden()


def test_that_of_several_sentences_is_their_mean_and_names_the_least(sure: Page, translator: Translator) -> None:
    good, bad = translator.translate([GOOD, BAD])
    lengths = len(good.text), len(bad.text)
    mean = ((good.confidence or 0) * lengths[0] + (bad.confidence or 0) * lengths[1]) / sum(lengths)
    sure.locator("#source").fill(f"{GOOD}\n{BAD}")
    expect(sure.locator("#confidence")).to_have_text(shown(mean))
    sure.locator("#confidence").click()
    meaning = sure.locator("#confidence-meaning")
    expect(meaning).to_contain_text(f"mean of 2; the least, {bad.confidence:.2f}, is “{bad.text.split()[0]}")


def test_a_low_one_is_marked_and_another_way_has_its_own(sure: Page, translator: Translator) -> None:
    sure.locator("#source").fill(BAD)
    expect(sure.locator("#confidence")).to_have_class("confidence low")
    sure.locator("#source").fill(GOOD)
    best, other, _ = translator.translate(GOOD, n_best=3).alternatives
    expect(sure.locator("#written")).to_have_text(best.text)
    sure.locator("#other-ways .alternative").nth(1).click()
    expect(sure.locator("#written")).to_have_text(other.text)
    expect(sure.locator("#confidence")).to_have_text(shown(other.confidence))


@pytest.mark.parametrize(("scheme", "width"), [("light", 1280), ("dark", 375)])
def test_it_can_be_read_by_all_on_screens_of_all_sizes(
    sure: Page, axe: Callable[[Page], list[str]], scheme: Any, width: int
) -> None:
    sure.emulate_media(color_scheme=scheme)
    sure.set_viewport_size({"width": width, "height": 800})
    sure.locator("#source").fill(BAD)
    sure.locator("#confidence").click()
    expect(sure.locator("#confidence-meaning")).to_be_visible()
    assert axe(sure) == []
    assert sure.evaluate("document.documentElement.scrollWidth") <= width


def test_the_models_tab_says_how_far_it_is_off(sure: Page) -> None:
    sure.locator("#tab-card").click()
    expect(sure.locator(".facts")).to_contain_text("Confidence is off by0.021calibration error, dev set")


def test_a_model_that_was_not_calibrated_shows_none(desk: Page) -> None:
    desk.locator("#model").select_option("other")
    desk.locator("#source").fill(GOOD)
    expect(desk.locator(".word").first).to_be_visible()
    expect(desk.locator("#confidence")).to_be_hidden()


def test_after_a_file_the_lines_that_the_model_is_unsure_of_are_named(sure: Page, translator: Translator) -> None:
    lines = [GOOD, "", BAD, "Thank you.", f"{BAD} {BAD}"]
    unsure = [number for number, line in enumerate(lines, 1) if (translator.translate(line).confidence or 1.0) < 0.4]
    assert 0 < len(unsure) < 4
    sure.get_by_role("tab", name="File").click()
    sure.locator("#file").set_input_files(
        {"name": "notes.txt", "mimeType": "text/plain", "buffer": "\n".join(lines).encode()}
    )
    noun = "lines" if len(unsure) > 1 else "line"
    expect(sure.locator(".file-card [role=status]")).to_have_text(
        f"Done. Worth a look: {noun} {', '.join(map(str, unsure))}."
    )
