"""Codes have names that people know."""

from __future__ import annotations

import pytest

from transduce.text.language_names import language_name


@pytest.mark.parametrize(
    ("code", "name"),
    [("en", "English"), ("tw", "Twi"), ("twi", "Twi"), ("DE", "German"), ("pt-BR", "Portuguese (BR)"),
     ("zh_TW", "Chinese (TW)"), ("xx", "xx"), ("", "")],
)  # fmt: skip
def test_names(code: str, name: str) -> None:
    assert language_name(code) == name
