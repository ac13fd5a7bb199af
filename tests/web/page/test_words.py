"""A word shows where it looked and what else it could have been; the lens shows everything."""

from __future__ import annotations

import re

import pytest
from playwright.sync_api import Page, expect

from transduce import Translator

SENTENCE = "My sister works in a hospital."
WRITTEN = ["Meine", "Schwester", "arbeitet", "in", "einem", "Krankenhaus."]


@pytest.fixture
def sentence(desk: Page) -> Page:
    """The page with a sentence that is translated."""
    desk.locator("#source").fill(SENTENCE)
    expect(desk.locator(".word")).to_have_text(WRITTEN)
    return desk


def marks(page: Page) -> dict[str, float]:
    """The source words that are marked, with their strengths."""
    found = page.locator("#mirror .looked-at").evaluate_all(
        "marks => marks.map(mark => [mark.textContent, Number(mark.dataset.strength)])"
    )
    return dict(found)


def strongest(page: Page) -> str:
    found = marks(page)
    return max(found, key=lambda word: found[word])


def test_a_word_shows_what_it_looked_at(sentence: Page) -> None:
    sentence.get_by_role("button", name="Schwester", exact=True).click()
    panel = sentence.get_by_role("region", name="Schwester")
    expect(panel.locator(".shares li")).not_to_have_count(0)
    assert strongest(sentence) == "sister"
    expect(sentence.locator("#threads path")).to_have_count(len(marks(sentence)))
    sentence.get_by_role("button", name="Krankenhaus.", exact=True).click()
    expect(sentence.get_by_role("region", name="Krankenhaus.").locator(".shares li").first).to_contain_text("hospital.")
    assert strongest(sentence) == "hospital."
    expect(sentence.get_by_role("button", name="Krankenhaus.", exact=True)).to_have_attribute("aria-expanded", "true")
    expect(sentence.get_by_role("button", name="Schwester", exact=True)).to_have_attribute("aria-expanded", "false")


def test_shares_and_probability_are_those_of_the_model(sentence: Page) -> None:
    maps = Translator.load("en-de").attention(SENTENCE, target=" ".join(WRITTEN))
    sentence.get_by_role("button", name="Schwester", exact=True).click()
    by_word = maps.words()["cross"]
    shares = dict(zip(by_word.columns, by_word.mean()[by_word.rows.index("Schwester")], strict=True))
    rows = sentence.locator(".shares li")
    expect(rows).not_to_have_count(0)
    for row in rows.all():
        name, share = row.locator("> :first-child").inner_text(), row.locator(".number").inner_text()
        expected = shares["end" if name == "end of sentence" else name]
        assert float(share[:-1]) == pytest.approx(100 * expected, abs=1)  # weights travel as bytes
    word = maps.target.words[1]
    probability = 1.0
    for step in maps.steps[word.first : word.last + 1]:
        probability *= step.probability
    expect(sentence.locator(".sure")).to_have_text(f"Probability {100 * probability:.0f}%")


def test_pointing_is_enough_once_a_sentence_is_known(sentence: Page) -> None:
    sentence.get_by_role("button", name="Schwester", exact=True).hover()
    expect(sentence.locator("#mirror .looked-at")).not_to_have_count(0)
    assert strongest(sentence) == "sister"
    sentence.get_by_role("button", name="Krankenhaus.", exact=True).hover()
    assert strongest(sentence) == "hospital."
    sentence.mouse.move(5, 5)
    expect(sentence.locator("#mirror .looked-at")).to_have_count(0)
    expect(sentence.locator("#threads path")).to_have_count(0)


def test_an_alternative_changes_the_rest_of_the_sentence(sentence: Page) -> None:
    sentence.get_by_role("button", name="einem", exact=True).click()
    alternatives = sentence.locator("#word-panel .alternative")
    expect(alternatives.first).to_be_visible()
    chosen = alternatives.first
    expect(chosen.locator(".rest")).not_to_be_empty()
    leads_to = chosen.locator(".rest").inner_text()
    assert leads_to != " ".join(WRITTEN)
    assert leads_to.startswith("Meine Schwester arbeitet in ")
    chosen.click()
    expect(sentence.locator("#written")).to_have_text(leads_to)
    expect(sentence.locator("#word-panel")).to_be_hidden()
    sentence.get_by_role("button", name="Back to the model’s own").click()
    expect(sentence.locator(".word")).to_have_text(WRITTEN)


def test_a_word_of_a_later_sentence_marks_its_own_sentence(desk: Page) -> None:
    desk.locator("#source").fill(f"Thank you.\n  {SENTENCE}")
    desk.get_by_role("button", name="Schwester", exact=True).click()
    expect(desk.locator("#mirror .looked-at")).not_to_have_count(0)
    assert strongest(desk) == "sister"
    expect(desk.locator("#other-ways")).to_contain_text("Meine Schwester")


def test_marks_go_when_the_text_changes(sentence: Page) -> None:
    sentence.get_by_role("button", name="Schwester", exact=True).click()
    expect(sentence.locator("#mirror .looked-at")).not_to_have_count(0)
    sentence.locator("#source").fill("Thank you.")
    expect(sentence.locator("#mirror .looked-at")).to_have_count(0)
    expect(sentence.locator("#word-panel")).to_be_hidden()


def test_everything_can_be_done_by_keyboard(desk: Page) -> None:
    keyboard = desk.keyboard
    desk.locator("#source").focus()
    keyboard.type(SENTENCE)
    expect(desk.locator(".word")).to_have_text(WRITTEN)
    keyboard.press("Tab")
    expect(desk.locator("#clear")).to_be_focused()
    keyboard.press("Tab")
    expect(desk.locator(".word").first).to_be_focused()
    for _ in range(4):
        keyboard.press("ArrowRight")
    expect(desk.get_by_role("button", name="einem", exact=True)).to_be_focused()
    keyboard.press("End")
    expect(desk.get_by_role("button", name="Krankenhaus.", exact=True)).to_be_focused()
    keyboard.press("ArrowLeft")
    keyboard.press("Enter")
    expect(desk.locator("#word-panel")).to_be_focused()
    keyboard.press("Escape")
    expect(desk.get_by_role("button", name="einem", exact=True)).to_be_focused()
    expect(desk.locator("#word-panel")).to_be_hidden()
    keyboard.press(" ")
    expect(desk.locator("#word-panel")).to_be_focused()
    keyboard.press("Tab")
    keyboard.press("Tab")
    chosen = desk.locator("#word-panel .alternative").first
    expect(chosen).to_be_focused()
    expect(chosen.locator(".rest")).not_to_be_empty()
    leads_to = chosen.locator(".rest").inner_text()
    keyboard.press("Enter")
    expect(desk.locator("#written")).to_have_text(leads_to)
    expect(desk.locator(".word").nth(4)).to_be_focused()


def test_tabs_are_walked_with_arrow_keys(desk: Page) -> None:
    desk.get_by_role("tab", name="Text").focus()
    desk.keyboard.press("ArrowRight")
    expect(desk.get_by_role("tabpanel", name="File")).to_be_visible()
    desk.keyboard.press("End")
    expect(desk.get_by_role("tabpanel", name="Model")).to_be_visible()
    desk.keyboard.press("ArrowRight")
    expect(desk.get_by_role("tabpanel", name="Text")).to_be_visible()
    expect(desk.get_by_role("tabpanel", name="Model")).to_be_hidden()


def test_the_lens_shows_the_sentence_that_is_chosen(desk: Page) -> None:
    desk.get_by_role("tab", name="Lens").click()
    expect(desk.locator("#view-lens")).to_contain_text("Write something under Text first")
    desk.get_by_role("tab", name="Text").click()
    desk.locator("#source").fill(f"Thank you. {SENTENCE}")
    expect(desk.get_by_role("button", name="Schwester", exact=True)).to_be_visible()
    desk.get_by_role("tab", name="Lens").click()
    stage = desk.locator("#view-lens .stage")
    expect(stage.locator("canvas").first).to_be_visible()
    expect(stage).to_contain_text("Danke")
    desk.get_by_role("combobox", name="Sentence").select_option(SENTENCE)
    expect(stage).to_contain_text("Schwester")


def test_an_alternative_in_the_lens_changes_the_translation(sentence: Page) -> None:
    sentence.get_by_role("tab", name="Lens").click()
    stage = sentence.locator("#view-lens .stage")
    stage.get_by_role("button", name="Meine").first.click()
    stage.get_by_role("button", name="Ich").click()
    expect(sentence.locator("#written")).to_have_text(re.compile("^Ich "))
    expect(stage.get_by_role("button", name="Ich").first).to_be_visible()
