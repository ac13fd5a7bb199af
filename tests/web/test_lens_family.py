"""The lens on models that only read, only write, see or remember: a saved page in a real browser."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from playwright.sync_api import Locator, Page, expect

from transduce.attention_lens import AttentionMaps, PictureMaps, lens_page
from transduce.attention_lens.capture import capture, capture_picture, capture_text
from transduce.model import TransformerConfig
from transduce.model.decoder_only import LanguageModel
from transduce.model.encoder_only import EncoderConfig, EncoderOnly
from transduce.model.recurrent import RecurrentConfig, RecurrentTranslator
from transduce.model.vision import VisionConfig, VisionTransformer
from transduce.text import Tokenizer, Vocabularies

LINES = ["We painted the house.", "They repaired the bicycles.", "Kofi understands the question."] * 3
TEXT = "They painted the bicycles."
EOS = 2
SHAPE: dict[str, Any] = {"d_model": 24, "d_ff": 32, "heads": 3, "encoder_layers": 2, "decoder_layers": 2}
PIXELS = """canvas => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return [canvas.width, canvas.height, ...copy.getImageData(0, 0, canvas.width, canvas.height).data];
}"""


@pytest.fixture(scope="module")
def tokenizer() -> Tokenizer:
    return Tokenizer.learn(LINES, 330, tags=["<mask>"])


@pytest.fixture(scope="module")
def family(tokenizer: Tokenizer) -> dict[str, AttentionMaps | PictureMaps]:
    """What models of chance look at, by what they do."""
    torch.manual_seed(7)
    text, mask = [*tokenizer.encode(TEXT), EOS], tokenizer.tag("<mask>")
    masked = [*tokenizer.encode("They painted"), mask, *tokenizer.encode("bicycles."), EOS]

    def reader(**head: Any) -> EncoderOnly:
        return EncoderOnly(EncoderConfig.tiny(tokenizer.size, **SHAPE | head))

    seer = VisionTransformer(VisionConfig.tiny(vocab_size=3, height=8, width=12, patch=4, labels=3, **SHAPE))
    with torch.no_grad():
        for name, weights in seer.named_parameters():
            weights.mul_(4 if "qkv" in name else 1)  # so that it looks at some patches far more than at others
    recurrent = RecurrentConfig(vocab_size=tokenizer.size, d_model=16, hidden=12, attention_width=8)
    # Grey rises from patch to patch, so that each place of the picture is known by its grey.
    picture = np.repeat(np.repeat(np.arange(0, 120, 20, dtype=np.uint8).reshape(2, 3), 4, 0), 4, 1)
    return {
        "fills": capture_text(reader(), tokenizer, masked, name="fills"),
        "labels": capture_text(reader(head="sentence", labels=2), tokenizer, text, ["glad", "sad"]),
        "tags": capture_text(reader(head="token", labels=3), tokenizer, text, ["NOUN", "VERB", "OTHER"]),
        "writes": capture_text(LanguageModel(TransformerConfig.tiny(tokenizer.size, **SHAPE)), tokenizer, text[:-1]),
        "sees": capture_picture(seer, picture[:, :, None], ["cat", "dog", "cow"], title="zoo:3"),
        "remembers": capture(
            RecurrentTranslator(recurrent), Vocabularies(tokenizer, tokenizer), text[:-1], text, name="remembers"
        ),
    }


@pytest.fixture
def open_lens(
    page: Page, tmp_path: Path, family: dict[str, AttentionMaps | PictureMaps], trouble: Any
) -> Callable[..., Page]:
    """Save a page and open it, as a file; it asks for nothing else."""

    def opened(name: str, **view: Any) -> Page:
        (tmp_path / "lens.html").write_text(lens_page(family[name], **view), encoding="utf-8")
        page.goto((tmp_path / "lens.html").as_uri())
        expect(page.locator(".lens-map-canvas")).to_be_visible()
        assert trouble.requests == [page.url]
        return page

    return opened


def text_maps(family: dict[str, AttentionMaps | PictureMaps], name: str) -> AttentionMaps:
    maps = family[name]
    assert isinstance(maps, AttentionMaps)
    return maps


def picture_maps(family: dict[str, AttentionMaps | PictureMaps]) -> PictureMaps:
    maps = family["sees"]
    assert isinstance(maps, PictureMaps)
    return maps


def groups(page: Page) -> list[str]:
    """What the bar has to choose from."""
    rows = page.get_by_role("toolbar").get_by_role("group").all()
    return [row.get_attribute("aria-label") or "" for row in rows]


def painted(canvas: Locator) -> np.ndarray[Any, Any]:
    """[height, width, 3]."""
    width, height, *values = canvas.evaluate(PIXELS)
    return np.array(values).reshape(height, width, 4)[:, :, :3]


def glow(canvas: Locator) -> np.ndarray[Any, Any]:
    """How much attention lies over each patch of the picture: red beyond blue, of which a grey picture has none."""
    pixels = painted(canvas)[2::4, 2::4]
    return np.asarray(pixels[:, :, 0] - pixels[:, :, 2])


def test_a_mask_shows_what_it_is_filled_with(
    open_lens: Callable[..., Page], family: dict[str, AttentionMaps | PictureMaps]
) -> None:
    maps = text_maps(family, "fills")
    page = open_lens("fills")
    assert page.title() == "Attention: They painted [MASK] bicycles."
    assert groups(page) == ["Units", "Layer", "Heads"]
    (guess,) = maps.guesses
    assert guess.place is not None
    expect(page.locator(".lens-unit-sure")).to_have_count(1)
    expect(page.locator(".lens-unit-mask")).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".lens-panel-choices .lens-title")).to_have_text("What it would fill in")
    expect(page.locator(".lens-step")).to_have_text(f"Token {guess.place + 1}: mask")
    shares = page.locator(".lens-alternatives .lens-share").all_inner_texts()
    assert shares == [f"{one.probability:.0%}" for one in guess.alternatives]
    page.locator(".lens-unit").first.click()  # of a word that is there, nothing was asked
    expect(page.locator(".lens-step")).to_have_text(f"Token {guess.place + 1}: mask")
    expect(page.locator(".lens-panel-lines .lens-readout")).to_contain_text("They looks at")


def test_a_classifier_s_labels_are_shown(
    open_lens: Callable[..., Page], family: dict[str, AttentionMaps | PictureMaps]
) -> None:
    (guess,) = family["labels"].guesses
    page = open_lens("labels")
    best = guess.alternatives[0]
    expect(page.locator(".lens-verdict")).to_have_text(f"{best.token} {best.probability:.0%}")
    assert page.locator(".lens-alternatives bdi").all_inner_texts() == [one.token for one in guess.alternatives]
    expect(page.locator(".lens-unit-sure")).to_have_count(0)


def test_a_tagger_s_tags_stand_under_the_words(
    open_lens: Callable[..., Page], family: dict[str, AttentionMaps | PictureMaps]
) -> None:
    maps = text_maps(family, "tags")
    page = open_lens("tags")
    tags = {guess.place: guess.alternatives for guess in maps.guesses}
    words = maps.source.words[:-1]
    assert page.locator(".lens-said").all_inner_texts() == [tags[word.first][0].token for word in words]
    page.locator(".lens-unit").nth(1).click()
    expect(page.locator(".lens-step")).to_have_count(1)
    shown = page.locator(".lens-alternatives").first.locator("bdi").all_inner_texts()
    assert shown == [one.token for one in tags[words[1].first]]


def test_a_writer_s_words_look_back_only(
    open_lens: Callable[..., Page], family: dict[str, AttentionMaps | PictureMaps]
) -> None:
    maps = text_maps(family, "writes")
    page = open_lens("writes", level="subwords")
    assert groups(page) == ["Units", "Layer", "Heads"]
    pixels = painted(page.locator(".lens-map-canvas")).sum(-1)
    assert pixels.shape == (len(maps.target.tokens),) * 2
    assert len(set(pixels[np.triu_indices(len(pixels), k=1)])) == 1
    assert len(set(pixels[np.tril_indices(len(pixels))])) > 5
    expect(page.locator(".lens-unit-sure")).to_have_count(len(maps.target.tokens))
    page.locator(".lens-unit").nth(2).click()
    expect(page.locator(".lens-step").first).to_contain_text("Step 3: ")
    expect(page.locator(".lens-whole .lens-step")).to_have_text("What would come next")
    (following,) = maps.guesses
    shares = page.locator(".lens-whole .lens-share").all_inner_texts()
    assert shares == [f"{one.probability:.0%}" for one in following.alternatives]


def test_additive_alignment_has_nothing_to_choose_but_units(open_lens: Callable[..., Page]) -> None:
    page = open_lens("remembers")
    assert groups(page) == ["Units"]
    expect(page.locator(".lens-panel-overview")).to_be_hidden()
    expect(page.locator(".lens-panel-map .lens-title")).to_have_text("Layer 1, head 1")
    page.locator(".lens-words-rows .lens-word").nth(1).hover()
    expect(page.locator(".lens-panel-lines .lens-readout")).to_contain_text("painted looks at")
    expect(page.locator(".lens-step").first).to_contain_text("Step ")


@pytest.mark.parametrize("token", [0, 5])
def test_attention_lies_over_the_picture(
    open_lens: Callable[..., Page], family: dict[str, AttentionMaps | PictureMaps], token: int
) -> None:
    maps = picture_maps(family)
    page = open_lens("sees", layer=2, heads=[3])
    canvas = page.locator(".lens-picture-canvas")
    if token:
        page.get_by_role("button", name="Row 2, column 2", exact=True).click()
        expect(page.locator(".lens-panel-picture .lens-title")).to_have_text("Where row 2, column 2 looks")
    expected = maps.over_picture(token)[1, 2]
    assert painted(canvas).shape == (8, 12, 3)
    order = glow(canvas).ravel().argsort()
    assert order[-1] == expected.argmax()
    assert order[0] == expected.argmin()
    row, column = np.unravel_index(expected.argmax(), expected.shape)
    expect(page.locator(".lens-panel-picture .lens-readout")).to_contain_text(
        re.compile(rf"row {row + 1}, column {column + 1} \d+%|itself \d+%")
    )
    thumb = page.get_by_role("button", name="Layer 1, head 2", exact=True).locator("canvas")
    assert glow(thumb).argmax() == maps.over_picture(token)[0, 1].argmax()


def test_a_picture_says_what_it_shows(
    open_lens: Callable[..., Page], family: dict[str, AttentionMaps | PictureMaps]
) -> None:
    (guess,) = family["sees"].guesses
    page = open_lens("sees")
    assert page.title() == "Attention: zoo:3"
    assert groups(page) == ["Layer", "Heads"]
    best = guess.alternatives[0]
    expect(page.locator(".lens-verdict")).to_have_text(f"{best.token} {best.probability:.0%}")
    assert page.locator(".lens-alternatives bdi").all_inner_texts() == [one.token for one in guess.alternatives]
    assert page.locator(".lens-map-left .lens-tick").all_inner_texts()[:3] == ["class", "1,1", "1,2"]


def test_a_picture_can_be_explored_by_keyboard(open_lens: Callable[..., Page]) -> None:
    page = open_lens("sees")
    title = page.locator(".lens-panel-picture .lens-title")
    patches = page.get_by_role("group", name="Patches")
    patches.get_by_role("button").first.focus()
    page.keyboard.press("ArrowRight")
    page.keyboard.press("ArrowDown")
    expect(title).to_have_text("Where row 2, column 2 looks")
    page.keyboard.press("Enter")
    expect(patches.locator("[aria-pressed=true]")).to_have_count(1)
    page.get_by_role("button", name="Layer 1, head 1", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    expect(page.locator(".lens-panel-map .lens-title")).to_have_text("Layer 2, head 1")
    expect(title).to_have_text("Where row 2, column 2 looks")
    page.keyboard.press("Escape")
    expect(title).to_have_text("Where the class token looks")
    page.locator(".lens-map-scroll").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(title).to_have_text("Where row 1, column 1 looks")
    expect(page.locator(".lens-patch.lens-there")).to_have_attribute("aria-label", "Row 1, column 1")


@pytest.mark.parametrize("name", ["fills", "labels", "tags", "writes", "sees", "remembers"])
def test_no_one_is_shut_out_by_day_or_night_at_a_desk_or_on_a_phone(
    open_lens: Callable[..., Page], page: Page, axe: Callable[[Page], list[str]], name: str
) -> None:
    page.emulate_media(color_scheme="light")
    open_lens(name)
    assert axe(page) == []
    light = painted(page.locator(".lens-map-canvas"))
    page.emulate_media(color_scheme="dark")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    assert axe(page) == []
    assert (painted(page.locator(".lens-map-canvas")) != light).any()
    page.set_viewport_size({"width": 390, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
