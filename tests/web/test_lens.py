"""The lens as a person uses it: a saved page in a real browser."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Callable, Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from playwright.sync_api import Locator, Page, expect

from transduce.attention_lens import Alternative, AttentionMaps, Labels, Step, Word, lens_page, static_files
from transduce.translator import Translator

TEXT = "My sister works in a hospital and my brother is a teacher."
LONG = " ".join([TEXT.replace(".", ",")] * 10)
ARABIC = "أختي تعمل في مستشفى"
PIXELS = """canvas => {
    const copy = new OffscreenCanvas(canvas.width, canvas.height).getContext('2d', { willReadFrequently: true });
    copy.drawImage(canvas, 0, 0);
    return [canvas.width, canvas.height, ...copy.getImageData(0, 0, canvas.width, canvas.height).data];
}"""


@pytest.fixture(scope="module")
def translator() -> Translator:
    return Translator.load("en-de")


@pytest.fixture(scope="module")
def maps(translator: Translator) -> AttentionMaps:
    return translator.attention(TEXT)


@pytest.fixture
def open_lens(page: Page, tmp_path: Path) -> Callable[..., Page]:
    """Save a page and open it, as a file."""

    def opened(maps: AttentionMaps, **view: Any) -> Page:
        (tmp_path / "lens.html").write_text(lens_page(maps, **view), encoding="utf-8")
        page.goto((tmp_path / "lens.html").as_uri())
        expect(page.locator(".lens-map-canvas")).to_be_visible()
        return page

    return opened


def lightness(canvas: Locator) -> np.ndarray[Any, Any]:
    """What is painted, [rows, columns]; in light mode more attention is darker."""
    width, height, *values = canvas.evaluate(PIXELS)
    return np.array(values).reshape(height, width, 4)[:, :, :3].sum(-1)


def big(page: Page) -> Locator:
    return page.locator(".lens-map-canvas")


def words(page: Page, side: str) -> Locator:
    return page.locator(f".lens-words-{side} .lens-word")


def button(page: Page, group: str, name: str) -> Locator:
    return page.get_by_role("group", name=group, exact=True).get_by_role("button", name=name, exact=True)


def test_a_saved_page_needs_nothing_but_itself(
    open_lens: Callable[..., Page], maps: AttentionMaps, trouble: Any
) -> None:
    page = open_lens(maps)
    assert trouble.requests == [page.url]
    assert page.title() == f"Attention: {TEXT}"
    assert words(page, "columns").all_inner_texts() == [word.text for word in maps.source.words]
    assert words(page, "rows").all_inner_texts() == [word.text for word in maps.target.words]
    layers, heads = maps.cross.shape[:2]
    expect(page.locator(".lens-cell")).to_have_count((layers + 1) * (heads + 1))  # and the means


@pytest.mark.parametrize(("kind", "level"), [("cross", "words"), ("encoder", "subwords"), ("decoder", "words")])
def test_what_is_painted_is_what_was_measured(
    open_lens: Callable[..., Page], maps: AttentionMaps, kind: Any, level: Any
) -> None:
    page = open_lens(maps, kind=kind, level=level, layer=2, heads=[3])
    expected = maps.at(level, kind).mean([2], [3])
    painted = lightness(big(page))
    assert painted.shape == expected.shape
    strong, weak = expected > 0.3, expected < 0.05
    assert strong.any()
    assert painted[strong].max() < painted[weak].min()
    assert painted.flat[expected.argmax()] == painted.min()
    assert page.locator(".lens-panel-map .lens-title").inner_text() == "Layer 2, head 3"


def test_pointing_at_a_word_shows_where_it_looks(open_lens: Callable[..., Page], maps: AttentionMaps) -> None:
    page = open_lens(maps, layer=3)
    canvas, readout = page.locator(".lens-lines-canvas"), page.locator(".lens-panel-lines .lens-readout")
    at_rest, lines = canvas.evaluate("c => c.toDataURL()"), int(canvas.get_attribute("data-lines") or 0)
    expect(page.locator(".lens-map-row-band")).to_be_hidden()
    place = [word.text for word in maps.target.words].index("Schwester")
    words(page, "rows").nth(place).hover()
    expect(readout).to_contain_text("Schwester looks at sister")
    assert canvas.evaluate("c => c.toDataURL()") != at_rest
    assert int(canvas.get_attribute("data-lines") or 0) < lines
    expect(page.locator(".lens-map-row-band")).to_be_visible()
    expect(page.locator(".lens-map-left .lens-tick-on")).to_have_text("Schwester")
    expect(page.locator(".lens-unit-target.lens-here")).to_have_text("Schwester")
    words(page, "columns").nth([word.text for word in maps.source.words].index("hospital")).hover()
    expect(readout).to_contain_text("hospital is looked at by Krankenhaus")
    page.mouse.move(1, 1)
    expect(readout).to_contain_text("Point at a word")
    assert canvas.evaluate("c => c.toDataURL()") == at_rest


def test_a_cell_says_its_share(open_lens: Callable[..., Page], maps: AttentionMaps) -> None:
    page = open_lens(maps, layer=3)
    cross = maps.words()["cross"]
    shares = cross.mean([3])
    row, column = np.unravel_index(shares.argmax(), shares.shape)
    box = page.locator(".lens-map-cells").bounding_box()
    assert box is not None
    x = box["x"] + (column + 0.5) * box["width"] / len(cross.columns)
    page.mouse.move(x, box["y"] + (row + 0.5) * box["height"] / len(cross.rows))
    expected = f"Writing {cross.rows[row]}: {shares[row, column]:.0%} on {cross.columns[column]}"
    expect(page.locator(".lens-panel-map .lens-readout")).to_have_text(expected)


def test_heads_go_off_and_on(open_lens: Callable[..., Page], maps: AttentionMaps) -> None:
    page = open_lens(maps, layer=3)
    title = page.locator(".lens-panel-map .lens-title")
    expect(title).to_have_text("Layer 3, mean of all 4 heads")
    all_heads = lightness(big(page))
    button(page, "Heads", "Head 2").click()
    expect(title).to_have_text("Layer 3, mean of heads 1, 3, 4")
    expect(button(page, "Heads", "Head 2")).to_have_attribute("aria-pressed", "false")
    assert (lightness(big(page)) != all_heads).any()
    button(page, "Heads", "Head 2").click()
    assert (lightness(big(page)) == all_heads).all()
    button(page, "Heads", "All heads on").click()
    expect(title).to_have_text("Layer 3, no head")
    expect(page.locator(".lens-lines-canvas")).to_have_attribute("data-lines", "0")
    button(page, "Heads", "All heads on").click()
    assert (lightness(big(page)) == all_heads).all()


def test_the_overview_chooses_a_head_or_a_mean(open_lens: Callable[..., Page], maps: AttentionMaps) -> None:
    page = open_lens(maps)
    title = page.locator(".lens-panel-map .lens-title")
    cell = page.get_by_role("button", name="Layer 3, head 1", exact=True)
    cell.click()
    expect(title).to_have_text("Layer 3, head 1")
    expect(cell).to_have_attribute("aria-pressed", "true")
    assert (lightness(big(page)) == lightness(cell.locator("canvas"))).all()
    words(page, "rows").nth(1).click()
    page.mouse.move(1, 1)
    page.get_by_role("button", name="All layers, all heads", exact=True).click()
    expect(words(page, "rows").nth(1)).to_have_attribute("aria-pressed", "true")
    expect(page.locator(".lens-map-row-band")).to_be_visible()
    expect(title).to_have_text("Mean of all layers, mean of all 4 heads")
    painted, expected = lightness(big(page)), maps.words()["cross"].mean()
    assert painted.flat[expected.argmax()] == painted.min()


def test_kinds_layers_and_subwords(open_lens: Callable[..., Page], maps: AttentionMaps) -> None:
    page = open_lens(maps)
    button(page, "Units", "Subwords").click()
    expect(words(page, "columns")).to_have_count(len(maps.source.tokens))
    expect(page.locator(".lens-unit-target")).to_have_count(len(maps.target.tokens))
    assert words(page, "columns").first.inner_text() == "▁My"
    page.get_by_role("button", name=re.compile("^Decoder")).click()
    assert words(page, "columns").first.inner_text() == "start"
    upper = np.triu_indices(len(maps.target.tokens), k=1)
    assert len(set(lightness(big(page))[upper])) == 1
    page.get_by_role("button", name=re.compile("^Encoder")).click()
    assert words(page, "rows").all_inner_texts() == words(page, "columns").all_inner_texts()
    button(page, "Layer", "Layer 1").click()
    expect(page.locator(".lens-panel-map .lens-title")).to_contain_text("Layer 1, ")


def test_each_word_shows_what_else_was_likely(open_lens: Callable[..., Page], maps: AttentionMaps) -> None:
    page = open_lens(maps)
    place = next(place for place, word in enumerate(maps.target.words) if word.last > word.first)
    word = maps.target.words[place]
    page.locator(".lens-unit-target").nth(place).click()
    steps = page.locator(".lens-step")
    expect(steps).to_have_count(word.last - word.first + 1)
    step = maps.steps[word.first]
    expect(steps.first).to_have_text(f"Step {word.first + 1}: {step.token} {step.probability:.0%}")
    shown = page.locator(".lens-alternatives").first.locator("bdi").all_inner_texts()
    assert shown == [one.token for one in step.alternatives]
    expect(page.locator(".lens-unit-target[aria-pressed=true]")).to_have_text(word.text)


def test_everything_can_be_reached_by_keyboard(open_lens: Callable[..., Page], maps: AttentionMaps) -> None:
    page = open_lens(maps, layer=3)
    page.get_by_role("button", name="Layer 1, head 1", exact=True).focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowRight")
    page.keyboard.press("Enter")
    expect(page.locator(".lens-panel-map .lens-title")).to_have_text("Layer 2, head 2")
    words(page, "columns").first.focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator(".lens-panel-lines .lens-readout")).to_contain_text("sister is looked at by")
    page.keyboard.press("ArrowRight")
    expect(page.locator(".lens-panel-lines .lens-readout")).to_contain_text("Schwester looks at")
    page.keyboard.press("Enter")
    expect(words(page, "rows").nth(1)).to_have_attribute("aria-pressed", "true")
    page.keyboard.press("Escape")
    expect(words(page, "rows").nth(1)).to_have_attribute("aria-pressed", "false")
    page.locator(".lens-map-scroll").focus()
    for key in ("ArrowDown", "ArrowDown", "ArrowRight"):
        page.keyboard.press(key)
    expect(page.locator(".lens-panel-map .lens-readout")).to_contain_text(re.compile("Writing Schwester: .* on sister"))
    stops = page.evaluate(
        'document.querySelectorAll(\'.lens button:not([tabindex="-1"]), .lens [tabindex="0"]\').length'
    )
    assert stops < 40


def test_light_and_dark(open_lens: Callable[..., Page], maps: AttentionMaps, page: Page) -> None:
    page.emulate_media(color_scheme="light")
    open_lens(maps)
    light = lightness(big(page))
    page.emulate_media(color_scheme="dark")
    expect(page.get_by_role("button", name="Dark")).to_have_attribute("aria-pressed", "true")
    dark = lightness(big(page))
    assert dark.flat[light.argmin()] == dark.max()
    assert dark.min() < light.min() + 60
    page.get_by_role("button", name="Dark").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert (lightness(big(page)) == light).all()


def test_a_long_sentence_stays_usable(open_lens: Callable[..., Page], translator: Translator, page: Page) -> None:
    maps = translator.attention(LONG, target=LONG)
    assert len(maps.source.tokens) > 120
    open_lens(maps, kind="encoder", level="subwords")
    assert lightness(big(page)).shape == (len(maps.source.tokens),) * 2
    shown = page.locator(".lens-map-top .lens-tick:not(.lens-tick-thin)")
    assert 20 < shown.count() < len(maps.source.tokens) / 2
    before = page.locator(".lens-map-cells").bounding_box()
    page.get_by_role("button", name="Enlarge").click()
    after = page.locator(".lens-map-cells").bounding_box()
    assert before is not None
    assert after is not None
    assert after["width"] > 2 * before["width"]
    assert shown.count() == len(maps.source.tokens)
    page.locator(".lens-map-scroll").focus()
    for _ in range(60):
        page.keyboard.press("ArrowRight")
    expect(page.locator(".lens-map-top .lens-tick-on")).to_be_in_viewport()
    assert lightness(page.locator(".lens-thumb").first).shape == (48, 48)


def test_nothing_sticks_out_of_the_window(open_lens: Callable[..., Page], translator: Translator, page: Page) -> None:
    open_lens(translator.attention(LONG, target=TEXT))
    for width in (1280, 820, 390):
        page.set_viewport_size({"width": width, "height": 800})
        assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_right_to_left_text_reads_from_the_right(
    open_lens: Callable[..., Page], translator: Translator, page: Page
) -> None:
    open_lens(translator.attention(TEXT, target=ARABIC))
    units = page.locator(".lens-unit-target")
    assert units.all_inner_texts() == [*ARABIC.split(), "end"]
    boxes = [unit.bounding_box() for unit in units.all()]
    assert [box["x"] for box in boxes if box] == sorted((box["x"] for box in boxes if box), reverse=True)
    assert words(page, "rows").all_inner_texts() == [*ARABIC.split(), "end"]
    words(page, "rows").nth(1).hover()
    expect(page.locator(".lens-panel-lines .lens-readout")).to_contain_text(f"{ARABIC.split()[1]} looks at")
    units.first.focus()
    page.keyboard.press("ArrowLeft")
    expect(units.nth(1)).to_be_focused()


def test_combining_marks_have_something_to_stand_on(open_lens: Callable[..., Page], page: Page) -> None:
    tokens = ["▁ह", "िन", "्दी", "<0xE1>", "</s>"]
    side = Labels("हिन्दी\ufffd", tokens, [Word("हिन्दी\ufffd", 0, 3), Word("end", 4, 4)])
    weights = np.full((1, 2, 5, 5), 0.2, dtype=np.float32)
    steps = [Step(token, 0.5, [Alternative(token, 0.5), Alternative("ि", 0.1)]) for token in tokens]
    maps = AttentionMaps("hand-made", None, None, side, side, weights, weights, weights, steps)
    open_lens(maps, level="subwords")
    assert words(page, "rows").all_inner_texts() == ["▁ह", "◌िन", "◌्दी", "0xE1", "end"]
    assert "◌ि" in page.locator(".lens-alternatives").first.inner_text()
    button(page, "Units", "Words").click()
    assert words(page, "rows").all_inner_texts() == ["हिन्दी\ufffd", "end"]


@pytest.mark.parametrize(("scheme", "level"), [("light", "words"), ("dark", "subwords")])
def test_no_one_is_shut_out(
    open_lens: Callable[..., Page],
    maps: AttentionMaps,
    page: Page,
    axe: Callable[[Page], list[str]],
    scheme: Any,
    level: Any,
) -> None:
    page.emulate_media(color_scheme=scheme)
    open_lens(maps, level=level)
    assert axe(page) == []
    label = big(page).get_attribute("aria-label") or ""
    assert re.search(r"Strongest: \S+ to \S+ \d+ percent", label)


@pytest.fixture
def served(tmp_path: Path) -> Iterator[str]:
    """The lens's modules as a server gives them, and a page that mounts it."""
    for name, path in static_files().items():
        (tmp_path / name).write_bytes(path.read_bytes())
    (tmp_path / "index.html").write_text(
        '<!doctype html><html lang="en"><title>lens</title><link rel="stylesheet" href="lens.css">'
        '<link rel="icon" href="data:,"><main id="here">before</main><script type="module" src="mount.js"></script>',
        encoding="utf-8",
    )
    (tmp_path / "mount.js").write_text(
        'import { mountLens } from "./lens.js";\n'
        'const data = await (await fetch("data.json")).json();\n'
        "window.chosen = [];\n"
        'window.lens = mountLens(document.getElementById("here"), data,'
        " { onAlternative: (prefix, token) => window.chosen.push([prefix, token]) });\n",
        encoding="utf-8",
    )

    class Quiet(SimpleHTTPRequestHandler):
        extensions_map = SimpleHTTPRequestHandler.extensions_map | {
            ".js": "text/javascript"
        }  # Windows may say otherwise

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(tmp_path))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        thread.join()


def test_another_page_can_hold_the_lens(page: Page, served: str, tmp_path: Path, maps: AttentionMaps) -> None:
    (tmp_path / "data.json").write_text(json.dumps(maps.as_json("numbers")), encoding="utf-8")
    page.goto(served)
    page.locator(".lens-unit-target").nth(2).click()
    step = maps.target.words[2].first
    other = maps.steps[step].alternatives[1].token
    page.locator("button.lens-alternative").first.click()
    assert page.evaluate("chosen") == [[maps.target.tokens[:step], other]]
    page.evaluate("lens.destroy()")
    assert page.locator("#here").inner_html() == ""
    page.evaluate("document.documentElement.dataset.theme = 'dark'")
