"""One file that holds all it needs and cannot be made to do anything else."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re

import pytest

from transduce.attention_lens import AttentionMaps, lens_page, static_files
from transduce.translator import Translator


@pytest.fixture(scope="module")
def page(maps: AttentionMaps) -> str:
    return lens_page(maps, kind="cross", layer=2, heads=[1, 3])


def embedded(page: str) -> dict[str, object]:
    (data,) = re.findall(r'<script type="application/json" id="lens-data">(.*?)</script>', page, flags=re.DOTALL)
    found: dict[str, object] = json.loads(data)
    return found


def test_the_page_holds_the_maps_and_what_to_open_with(page: str, maps: AttentionMaps) -> None:
    assert embedded(page) == {
        "data": json.loads(json.dumps(maps.as_json("bytes"))),
        "view": {"kind": "cross", "layer": 2, "heads": [1, 3]},
    }


def test_the_page_asks_nobody_for_anything(page: str) -> None:
    assert not re.search(r"https?:|<link|<img|<iframe|@import|url\(|\bfetch\(|XMLHttpRequest|WebSocket", page)
    assert not re.search(r"^import |^export ", page, flags=re.MULTILINE)


def test_only_its_own_script_and_style_may_run(page: str) -> None:
    policy = html.unescape(re.findall(r'Content-Security-Policy" content="([^"]*)"', page)[0])
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for name, part in (("script", r'<script type="module">(.*?)</script>'), ("style", r"<style>(.*?)</style>")):
        (content,) = re.findall(part, page, flags=re.DOTALL)
        fingerprint = base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()
        assert f"{name}-src 'sha256-{fingerprint}'" in policy


def test_a_text_cannot_become_part_of_the_page(translator: Translator) -> None:
    text = '</script><script>alert("&")</script><!--'
    page = lens_page(translator.attention(text, target=text))
    assert page.count("<script") == 2
    assert page.count("</script>") == 2
    assert "<!--" not in page
    assert embedded(page)["data"]["source"]["text"] == text  # type: ignore[index]


def test_every_module_of_the_lens_is_reached_from_the_one_to_import(page: str) -> None:
    files = static_files()
    assert {"lens.js", "lens.css"} <= set(files)
    for name, path in files.items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, name
        if name != "lens.js" and name.endswith(".js"):
            (first, *_) = re.findall(r"^export (?:function|class|const) (\w+)", path.read_text("utf-8"), re.MULTILINE)
            assert re.search(rf"(function|class|const) {first}\b", page), name


def test_every_class_of_the_lens_is_its_own() -> None:
    style = static_files()["lens.css"].read_text(encoding="utf-8")
    names = re.findall(r"\.([a-z][\w-]*)", re.sub(r"/\*.*?\*/", "", style))
    assert len(names) > 50
    assert [name for name in names if not name.startswith("lens")] == []
