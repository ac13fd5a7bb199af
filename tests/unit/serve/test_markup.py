"""HTML taken apart and put together again is the same HTML."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.serve.markup import Markup


@pytest.mark.parametrize(
    ("html", "texts"),
    [
        ("Hello", ["Hello"]),
        ("<p>Hello <b>you</b>.</p>", ["Hello ", "you"]),
        ("<a href='x?a=1&amp;b=2' title=\"y\">Go &amp; see</a>", ["Go & see"]),
        ("<script>let a = '<b>text</b>'</script><style>b { }</style>Text", ["Text"]),
        ("<pre>as it is</pre><code>x = 1</code>", []),
        ("a<br/>b<br>c<!-- d --><!DOCTYPE html>", ["a", "b", "c"]),
        ("5 &lt; 6 &#8364; &eacute;", ["5 < 6 € é"]),
        ("", []),
        ("...  \n", []),
    ],
)
def test_texts_are_found_and_tags_kept(html: str, texts: list[str]) -> None:
    markup = Markup(html)
    assert markup.texts == texts
    again = markup.joined(markup.texts)
    assert Markup(again).texts == texts
    if "&#" not in html:
        assert again == html


def test_translations_cannot_become_tags() -> None:
    assert Markup("<p>a</p>").joined(["<script>x & y"]) == "<p>&lt;script&gt;x &amp; y</p>"


@given(st.text(alphabet="<>&;/ab!-\"'= \n#é", max_size=60))
def test_anything_can_be_taken_apart_and_put_together(html: str) -> None:
    markup = Markup(html)
    assert Markup(markup.joined(markup.texts)).texts == markup.texts
    assert markup.joined(["x"] * len(markup.texts)).count("x") == len(markup.texts)


def test_what_is_marked_not_to_be_translated_stays() -> None:
    html = '<p>Ask <span translate="no">Acme <span>Cloud</span> now</span> or <b class="x notranslate">me</b>.</p>'
    markup = Markup(html)
    assert markup.texts == ["Ask ", " or "]
    assert markup.joined(["FRAG ", " ODER "]) == html.replace("Ask", "FRAG").replace(" or ", " ODER ")
