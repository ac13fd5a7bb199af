"""What must survive a translation is found, whole and nothing else."""

from __future__ import annotations

import time
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from transduce.guards.parts import bare, edges, find_parts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Nothing to keep here, is there?", []),
        ("See https://example.com/a?b=1&c=2#d.", ["https://example.com/a?b=1&c=2#d"]),
        ("(See https://en.wikipedia.org/wiki/A_(b)).", ["https://en.wikipedia.org/wiki/A_(b)"]),
        ("www.example.org! example.com/x, not e.g. this", ["www.example.org", "example.com/x"]),
        ("Write to mary.smith+news@mail.example.org.", ["mary.smith+news@mail.example.org"]),
        ("Hi {name}, %s has %(n)d of ${x}, {{ y }} and %1$s.", ["{name}", "%s", "%(n)d", "${x}", "{{ y }}", "%1$s"]),
        ('<b>Bold</b> &nbsp; <a href="x">link</a><br/>', ["<b>", "</b>", "&nbsp;", '<a href="x">', "</a>", "<br/>"]),
        ("I ❤️ it 👩‍👩‍👧🇬🇭 1️⃣", ["❤️", "👩‍👩‍👧🇬🇭", "1️⃣"]),
        ("It costs 1,234.56 or 5 000, at 2:30", ["1,234.56", "5 000", "2:30"]),
        ("On 12/05/2020 or 2020-05-12", ["12/05/2020", "2020-05-12"]),
        ("The 3rd MP3 of v2.0.1", ["3rd", "MP3", "v2.0.1"]),
        ("我有3只猫", ["3"]),
        ("Text with ⟦1⟧ in it", ["⟦1⟧"]),
        ("Run `make test` in ./src/app or C:\\Users\\tom.", ["`make test`", "./src/app", "C:\\Users\\tom"]),
        ("I am 100% sure and/or 50%discount", ["100", "50"]),
        ("1 < 2 and 3 > 2", ["1", "2", "3", "2"]),
    ],
)
def test_parts_of_a_text(text: str, expected: list[str]) -> None:
    assert [part.filling for part in find_parts(text)] == expected


def test_marks_say_what_to_keep_and_are_not_kept_themselves() -> None:
    (part,) = find_parts("Ask <keep>Dr. No, 5 <b></keep>.")
    assert (part.kind, part.filling) == ("keep", "Dr. No, 5 <b>")


@given(st.text(alphabet="ab1.,:<>{}%@/w ⟦⟧😀&;$`\\", max_size=60))
def test_parts_are_in_order_and_leave_the_rest_as_it_is(text: str) -> None:
    parts = find_parts(text)
    assert all(one.end <= other.start for one, other in pairwise(parts))
    assert all(part.start < part.end for part in parts)
    assert all(text[part.start : part.end] == part.filling for part in parts if part.kind != "keep")
    assert len(bare(text, parts)) == len(text) - sum(part.end - part.start for part in parts) + len(parts)
    start, end = edges(text, parts)
    assert 0 <= start <= end <= len(text)


@pytest.mark.parametrize("unit", ["a", "1", "a.", "<a ", "a@", "{", "1.", "/a"])
def test_time_grows_with_the_length_of_a_text_only(unit: str) -> None:
    started = time.process_time()
    find_parts(unit * 25_000)
    assert time.process_time() - started < 2


@pytest.mark.parametrize(
    ("text", "core"),
    [
        ("- Buy milk", "Buy milk"),
        ("<b>Hello</b> 😀", "Hello"),
        ("😀 <i>Hello</i> you", "Hello</i> you"),
        ("a - b", "a - b"),
    ],
)
def test_a_sentence_can_do_without_what_is_around_it(text: str, core: str) -> None:
    start, end = edges(text, find_parts(text))
    assert text[start:end] == core
