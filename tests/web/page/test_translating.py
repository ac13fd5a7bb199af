"""Typing on the left, reading on the right."""

from __future__ import annotations

import json
from typing import Any

import pytest
from playwright.sync_api import Page, Route, expect

from transduce import Translator

SENTENCE = "Where is the station?"


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load("en-de")


def written(page: Page) -> Any:
    return page.locator("#written")


def test_a_translation_appears_while_typing(desk: Page, translator: Translator) -> None:
    desk.locator("#source").press_sequentially(SENTENCE, delay=5)
    expect(written(desk)).to_have_text(translator.translate(SENTENCE).text)
    expect(written(desk)).to_have_attribute("lang", "de")
    expect(desk.locator("#source")).to_have_attribute("lang", "en")
    expect(desk.locator("#announcer")).to_have_text(translator.translate(SENTENCE).text)


def test_what_could_not_be_made_good_is_said_below(desk: Page) -> None:
    warning = {"code": "pieces", "message": "A sentence was translated in pieces."}
    answer = {"text": "Eins.", "score": -1, "alternatives": [{"text": "Eins.", "score": -1}], "warnings": [warning]}
    answers = {"model": "en-de", "target": "de", "translations": [answer, answer | {"warnings": []}]}
    desk.route("**/v1/translate", lambda route: route.fulfill(json=answers))
    desk.locator("#source").fill("One. Two.")
    expect(desk.locator("#warnings li")).to_have_text([warning["message"]])
    desk.locator("#source").fill("")
    expect(desk.locator("#warnings")).to_be_hidden()


def test_sentences_are_translated_one_by_one_and_lines_stay_lines(desk: Page, translator: Translator) -> None:
    sentences = ["My sister works in a hospital.", "Thank you.", "Dr. Smith is here."]
    first, second, third = (each.text for each in translator.translate(sentences))
    desk.locator("#source").fill(f"  {sentences[0]} {sentences[1]}\n\n\n{sentences[2]}\n")
    expect(written(desk)).to_contain_text(third)
    assert written(desk).text_content() == f"  {first} {second}\n\n\n{third}\n"


def test_only_new_sentences_are_asked_for(desk: Page) -> None:
    desk.locator("#source").fill("Thank you. I am hungry.")
    expect(desk.locator(".word").first).to_be_visible()
    with desk.expect_request("**/v1/translate") as asked:
        desk.locator("#source").fill("Thank you. I am tired.")
    assert asked.value.post_data_json["q"] == ["I am tired."]


def test_outdated_requests_are_called_off(desk: Page, translator: Translator) -> None:
    held: list[Route] = []

    def hold_the_first(route: Route) -> None:
        if held:
            route.continue_()
        else:
            held.append(route)

    desk.route("**/v1/translate", hold_the_first)
    with desk.expect_event("requestfailed") as called_off:
        with desk.expect_request("**/v1/translate"):
            desk.locator("#source").fill("I would like a cup of coffee.")
        desk.locator("#source").fill(SENTENCE)
    assert "coffee" in (called_off.value.post_data or "")
    expect(written(desk)).to_have_text(translator.translate(SENTENCE).text)


def test_while_a_new_translation_is_awaited_the_old_one_is_marked(desk: Page) -> None:
    desk.locator("#source").fill(SENTENCE)
    expect(desk.locator(".word").first).to_be_visible()
    held: list[Route] = []
    desk.route("**/v1/translate", lambda route: held.append(route))
    with desk.expect_request("**/v1/translate"):
        desk.locator("#source").fill("Thank you.")
    expect(written(desk)).to_have_class("written outdated")
    expect(written(desk)).to_have_attribute("aria-busy", "true")
    held[0].continue_()
    expect(written(desk)).to_have_class("written")
    expect(written(desk)).to_have_attribute("aria-busy", "false")


def test_other_ways_to_say_it_can_be_chosen_and_taken_back(desk: Page, translator: Translator) -> None:
    found = translator.translate(SENTENCE, n_best=3)
    desk.locator("#source").fill(SENTENCE)
    ways = desk.locator("#other-ways .alternative")
    expect(ways).to_have_count(3)
    for row, alternative in zip(ways.all(), found.alternatives, strict=True):
        expect(row).to_contain_text(alternative.text)
        expect(row).to_contain_text(f"{alternative.score:.2f}".replace("-", "−"))
    ways.nth(1).click()
    expect(written(desk)).to_have_text(found.alternatives[1].text)
    expect(ways.nth(1)).to_have_attribute("aria-pressed", "true")
    desk.get_by_role("button", name="Back to the model’s own").click()
    expect(written(desk)).to_have_text(found.text)


def test_beam_and_number_of_ways_are_options(desk: Page) -> None:
    desk.get_by_role("button", name="Options").click()
    desk.get_by_label("Other ways").select_option("5")
    desk.get_by_label("Beam").select_option("8")
    desk.keyboard.press("Escape")
    with desk.expect_request("**/v1/translate") as asked:
        desk.locator("#source").fill(SENTENCE)
    assert (asked.value.post_data_json["beam"], asked.value.post_data_json["n_best"]) == (8, 5)
    expect(desk.locator("#other-ways .alternative")).to_have_count(5)


def test_another_model_and_another_direction(desk: Page, translator: Translator) -> None:
    desk.locator("#source").fill(SENTENCE)
    expect(written(desk)).to_have_text(translator.translate(SENTENCE).text)
    desk.get_by_role("combobox", name="Model").select_option("other")
    expect(written(desk)).not_to_have_text(translator.translate(SENTENCE).text)
    desk.get_by_label("From").select_option("German")
    expect(desk.locator("#written[aria-busy=false]")).to_be_visible()
    expect(desk.locator("#into option")).to_have_text(["English", "French"])
    with desk.expect_request("**/v1/translate") as asked:
        desk.get_by_label("Into").select_option("French")
    assert (asked.value.post_data_json["model"], asked.value.post_data_json["target"]) == ("several", "fr")
    expect(written(desk)).to_have_attribute("lang", "fr")


def test_swapping_takes_the_translation_along(desk: Page, translator: Translator) -> None:
    desk.locator("#source").fill(SENTENCE)
    expect(written(desk)).to_have_text(translator.translate(SENTENCE).text)
    desk.get_by_role("button", name="Swap languages").click()
    expect(desk.locator("#source")).to_have_value(translator.translate(SENTENCE).text)
    assert (desk.get_by_label("From").input_value(), desk.get_by_label("Into").input_value()) == ("de", "en")
    expect(written(desk)).to_have_attribute("lang", "en")
    desk.get_by_role("button", name="Swap languages").click()
    expect(desk.get_by_label("From")).to_have_value("en")


def test_a_model_that_does_not_say_its_languages_goes_by_its_name(desk: Page) -> None:
    desk.get_by_label("From").select_option("silent")
    expect(desk.get_by_role("button", name="Swap languages")).to_be_disabled()
    desk.locator("#source").fill("We painted the house.")
    expect(desk.locator(".word").first).to_be_visible()
    assert written(desk).get_attribute("lang") is None


def test_the_translation_is_copied_as_plain_text(desk: Page, translator: Translator) -> None:
    desk.context.grant_permissions(["clipboard-read", "clipboard-write"])
    desk.locator("#source").fill(f"{SENTENCE}\nThank you.")
    both = "\n".join(translator.translate(each).text for each in (SENTENCE, "Thank you."))
    expect(desk.locator(".word").nth(4)).to_be_visible()
    desk.get_by_role("button", name="Copy").click()
    expect(desk.get_by_role("button", name="Copied")).to_be_visible()
    assert desk.evaluate("navigator.clipboard.readText()").replace("\r\n", "\n") == both
    desk.evaluate("navigator.clipboard.writeText('')")
    desk.evaluate("getSelection().selectAllChildren(document.getElementById('written'))")
    desk.keyboard.press("Control+C")
    assert desk.evaluate("navigator.clipboard.readText()").replace("\r\n", "\n").strip() == both


def test_markup_in_a_text_stays_text(desk: Page) -> None:
    hostile = "<img src=x onerror=\"document.title='taken over'\"> <b>Thank you.</b>"
    desk.get_by_role("combobox", name="Model").select_option("other")
    desk.locator("#source").fill(hostile)
    expect(desk.locator(".word").first).to_be_visible()
    assert desk.locator("#written img, #written b, #mirror img, #other-ways img").count() == 0
    assert desk.title() == "transduce"


def test_right_to_left_text_is_written_from_the_right(desk: Page) -> None:
    desk.locator("#source").fill("أين المحطة؟")
    assert desk.locator("#source").evaluate("field => getComputedStyle(field).direction") == "rtl"
    assert desk.locator("#mirror").evaluate("mirror => getComputedStyle(mirror).direction") == "rtl"


@pytest.mark.parametrize(
    ("text", "sentences"),
    [
        ("One. Two! Three?", ["One.", "Two!", "Three?"]),
        ("Mr. Osei met Dr. Mensah. They talked.", ["Mr. Osei met Dr. Mensah.", "They talked."]),
        ("It costs 3.50 now. Good.", ["It costs 3.50 now.", "Good."]),
        ("no full stop\nnext line", ["no full stop", "next line"]),
        ("  \n\n One.\r\n\r\nTwo.  \n", ["One.", "Two."]),
        ("これは本です。あれはペンです。", ["これは本です。", "あれはペンです。"]),
        ("", []),
        (" \n ", []),
    ],
)
def test_sentences_are_found_and_nothing_is_lost(desk: Page, text: str, sentences: list[str]) -> None:
    cut = desk.evaluate("async text => (await import('/static/sentences.js')).sentencesOf(text, 'en')", text)
    assert [each["sentence"] for each in cut["sentences"]] == sentences
    assert cut["before"] + "".join(each["sentence"] + each["space"] for each in cut["sentences"]) == text


def test_the_model_card_is_shown_and_cannot_run_anything(desk: Page) -> None:
    desk.get_by_role("combobox", name="Model").select_option("other")
    desk.get_by_role("tab", name="Model").click()
    card = desk.get_by_role("article", name="Model card")
    expect(card).to_contain_text('<script>document.title = "taken over"</script>')
    expect(card.locator("ol li")).to_have_text("See the paper, not this.")
    expect(card.locator("a")).to_have_count(1)
    expect(card.locator("a")).to_have_attribute("rel", "noopener noreferrer")
    expect(card.locator("pre")).to_have_text("make <b>it</b>")
    assert desk.title() == "transduce"


def test_the_model_card_gives_scores_and_size(desk: Page, translator: Translator) -> None:
    desk.get_by_role("tab", name="Model").click()
    facts = desk.locator(".facts")
    scores = json.loads((translator.path / "scores.json").read_text(encoding="utf-8"))
    parameters = sum(weight.numel() for weight in translator.bundle.model().parameters())
    expect(facts).to_contain_text("English → German")
    expect(facts).to_contain_text(f"{parameters:,}")
    expect(facts).to_contain_text(f"{scores['test']['bleu']:.1f}")
    expect(desk.locator(".card th").first).to_have_text("English")
