"""Pieces of bytes, as GPT-2 and BART write them: a letter stands for each byte, and Ġ for a space."""

from __future__ import annotations

from collections.abc import Sequence

from transduce.text.normalise import SPACE_MARK

__all__ = ["readable"]


def readable(names: Sequence[str]) -> list[str]:
    """The pieces for people to look at, each once: as text where their bytes are text, with ▁ for a leading space."""
    bytes_of = _bytes()
    found: list[str] = []
    taken: set[str] = set()
    for name in names:
        shown = name
        if all(letter in bytes_of for letter in name):
            try:
                text = bytes(bytes_of[letter] for letter in name).decode()
                shown = SPACE_MARK + text[1:] if text.startswith(" ") else text
            except UnicodeDecodeError:  # a part of a character
                shown = name
        while shown in taken:
            shown += "'"
        taken.add(shown)
        found.append(shown)
    return found


def _bytes() -> dict[str, int]:
    """The byte of each letter: those that can be seen are themselves, the others are counted from 256 on."""
    seen = [*range(ord("!"), ord("~") + 1), *range(ord("¡"), ord("¬") + 1), *range(ord("®"), ord("ÿ") + 1)]
    others = [byte for byte in range(256) if byte not in seen]
    return {chr(byte): byte for byte in seen} | {chr(256 + place): byte for place, byte in enumerate(others)}
