"""Make the pictures of README and guides: the attention of models, two of which are trained first, lens and web page.

Run it with: python docs/make_pictures.py [digits] [lens] [patches] [page]. Pages are photographed in the system's
Chromium.
"""

from __future__ import annotations

import io
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from playwright.sync_api import Locator, Page

ROOT = Path(__file__).parent.parent
sys.path.insert(0, str(ROOT / "examples"))
import reverse_digits  # noqa: E402
from reverse_digits import BOS, EOS, FIRST_DIGIT  # noqa: E402

CELL, GAP, MARGIN = 18, 34, 46
SENTENCE = "My sister works in a hospital and my brother is a teacher."


def name(token: int) -> str:
    """What a token is called in the picture."""
    return "end" if token == EOS else str(token - FIRST_DIGIT)


def text(x: float, y: float, words: str, anchor: str = "middle", weight: str = "normal") -> str:
    """One line of SVG text."""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}" font-weight="{weight}">{words}</text>'


def attention_map(weights: list[list[float]], source: list[int], written: list[int], x0: int, y0: int) -> list[str]:
    """One head: rows are tokens written, columns tokens read; the darker, the more attention."""
    parts = [text(x0 + (i + 0.5) * CELL, y0 - 5, name(token)) for i, token in enumerate(source)]
    for row, (values, token) in enumerate(zip(weights, written, strict=True)):
        y = y0 + row * CELL
        parts.append(text(x0 - 4, y + 0.68 * CELL, name(token), anchor="end"))
        for column, value in enumerate(values):
            position = f'x="{x0 + column * CELL}" y="{y}" width="{CELL - 1}" height="{CELL - 1}"'
            parts.append(f'<rect {position} fill="#1d4ed8" fill-opacity="{0.04 + 0.96 * value:.3f}"/>')
    return parts


def picture(cross: list[torch.Tensor], source: list[int], written: list[int]) -> str:
    """All layers (rows) and heads (columns) as one SVG."""
    heads = cross[0].size(1)
    step_x, step_y = len(source) * CELL + GAP, len(written) * CELL + GAP + 14
    width, height = MARGIN + heads * step_x, 14 + len(cross) * step_y
    parts = [f'<rect width="{width}" height="{height}" fill="white"/>']
    for layer, weights_BHTS in enumerate(cross):
        for head, weights_TS in enumerate(weights_BHTS[0].tolist()):
            x0, y0 = MARGIN + head * step_x, 44 + layer * step_y
            title = f"layer {layer + 1}, head {head + 1}"
            parts.append(text(x0 + len(source) * CELL / 2, y0 - 22, title, weight="bold"))
            parts += attention_map(weights_TS, source, written, x0, y0)
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" width="{width}" height="{height}"'
    return "\n".join([f'{head} font-family="sans-serif" font-size="11">', *parts, "</svg>\n"])


def draw_digits() -> None:
    """Train, read off the weights, write the picture."""
    torch.manual_seed(1)
    model = reverse_digits.make_model()
    for _ in reverse_digits.train(model):
        pass
    digits = [FIRST_DIGIT + digit for digit in (3, 1, 4, 1, 5, 9, 2)]
    source, written = [*digits, EOS], [*digits[::-1], EOS]
    with torch.inference_mode():
        _, record = model.eval().with_attention(torch.tensor([source]), torch.tensor([[BOS, *written[:-1]]]))
    target = ROOT / "docs" / "pictures" / "attention.svg"
    target.write_text(picture(record.cross, source, written), encoding="utf-8")
    print(f"wrote {target}")


def draw_lens() -> None:
    """Look at a sentence through the built-in model, point at a word, take a picture of the page."""
    from transduce import Translator
    from transduce.attention_lens import lens_page

    maps = Translator.load("en-de").attention(SENTENCE)
    photograph(
        lens_page(maps), "lens", lambda page: page.locator(".lens-words-rows").get_by_role("button", name="Krankenhaus")
    )


def draw_patches() -> None:
    """Train a model of handwritten digits for some minutes, look at one that it has not seen."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "transduce"]
        model, lens = str(Path(folder) / "digits"), Path(folder) / "lens.html"
        recipe = ["--recipe", "image-classification", "--minutes", "3"]
        finer = "model.patch=4"  # there is more to see than with those that learn fastest
        subprocess.run([*command, "train", *recipe, "mnist", finer, "-o", model], check=True)
        subprocess.run([*command, "attention", model, "mnist:17", "-o", str(lens)], check=True)
        photograph(
            lens.read_text(encoding="utf-8"), "patches", lambda page: page.locator(".lens-title").first, height=1010
        )


def photograph(html: str, name: str, point_at: Callable[[Page], Locator], height: int = 900) -> None:
    """Open a page by day, point at something, take a picture."""
    from playwright.sync_api import sync_playwright

    browser = shutil.which("chromium") or shutil.which("google-chrome")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page_file = Path(folder) / "lens.html"
        page_file.write_text(html, encoding="utf-8")
        chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        size = {"width": 1280, "height": height}
        page = chromium.new_page(viewport=size, device_scale_factor=2, color_scheme="light")
        page.goto(page_file.as_uri())
        point_at(page).hover()
        save(page.screenshot(), ROOT / "docs" / "pictures" / f"{name}.png")
        chromium.close()


def draw_page() -> None:
    """Serve the built-in model, type, choose a word; a picture as on a desk by day, and one as on a phone by night."""
    from playwright.sync_api import sync_playwright

    folder = ROOT / "docs" / "pictures"
    browser = shutil.which("chromium") or shutil.which("google-chrome")
    command = [sys.executable, "-m", "transduce", "serve", "en-de", "--port", "0", "--quiet"]
    service = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, encoding="utf-8")
    try:
        assert service.stderr is not None
        address = next(line.split()[1] for line in service.stderr if line.startswith("Ready: "))
        with sync_playwright() as playwright:
            chromium = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
            for name, width, height, theme in (("page", 1280, 1030, "light"), ("page-phone", 390, 844, "dark")):
                size = {"width": width, "height": height}
                context = chromium.new_context(
                    viewport=size, device_scale_factor=2, color_scheme=theme, reduced_motion="reduce"
                )
                page = context.new_page()
                page.goto(address)
                page.locator("#source").fill(SENTENCE)
                page.locator("#written").get_by_role("button", name="Lehrer").click()
                page.locator("#word-panel .shares").wait_for()
                page.locator("#word-panel .rest:empty").first.wait_for(state="detached")
                save(page.screenshot(), folder / f"{name}.png")
            chromium.close()
    finally:
        service.kill()
        service.communicate()


def save(photograph: bytes, target: Path) -> None:
    """Write a picture of a page; it has few colours, and with a palette the file is a third of its size."""
    from PIL import Image

    picture = Image.open(io.BytesIO(photograph)).convert("RGB")
    picture.quantize(256, kmeans=4, dither=Image.Dither.NONE).save(target, optimize=True)
    print(f"wrote {target}")


def main() -> None:
    """Draw what is asked for, or all."""
    torch.set_num_threads(1)
    wanted = sys.argv[1:] or ["digits", "lens", "patches", "page"]
    if "digits" in wanted:
        draw_digits()
    if "lens" in wanted:
        draw_lens()
    if "patches" in wanted:
        draw_patches()
    if "page" in wanted:
        draw_page()


if __name__ == "__main__":
    main()
