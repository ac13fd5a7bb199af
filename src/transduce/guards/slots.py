"""Slots in place of what must survive, and the other way round."""

from __future__ import annotations

import re
from collections.abc import Sequence

from transduce.guards.capitals import in_small_letters
from transduce.guards.draft import Draft
from transduce.guards.glossary import capitalised
from transduce.guards.parts import Part

__all__ = ["at_start", "filled", "masked", "restored"]

SLOT = re.compile(r"⟦\d{1,3}⟧")


def masked(draft: Draft) -> str:
    """What a model reads of a draft: slots in place of parts, and no marks."""
    text = draft.text if not draft.capitals else _small_around(draft)
    kept = [part for part in draft.parts if part.kind == "keep" and part not in draft.slots.values()]
    if not draft.slots and not kept:
        return text
    # A slot is a word of its own to the model, also where a tag stands close to one.
    slots = []
    for slot, part in draft.slots.items():
        before, behind = _stuck(part, draft.text)
        slots.append(part._replace(filling=" " * before + slot + " " * behind))
    return filled(text, sorted([*slots, *kept]))


def restored(draft: Draft, text: str) -> str:
    """A text with parts in place of slots; slots that stand for nothing are left out."""
    own = set() if draft.slots else set(SLOT.findall(draft.text))
    written = ""
    position = 0
    for found in SLOT.finditer(text):
        between, slot = text[position : found.start()], found.group()
        position = found.end()
        written += between
        if slot in own:
            written += slot
        elif slot not in draft.slots:
            written = written.rstrip()
        else:
            part = draft.slots[slot]
            stuck_before, stuck_behind = _stuck(part, draft.text)
            written = written.rstrip() if stuck_before else written + " " * _is_word(written[-1:])
            written += part.filling if written.strip() else at_start(part, draft)
            if stuck_behind:
                position += len(text[position:]) - len(text[position:].lstrip())
            else:
                written += " " * _is_word(text[position : position + 1])
    return (written + text[position:]).strip()


def filled(text: str, parts: Sequence[Part]) -> str:
    """A text with something else in place of its parts."""
    pieces, position = [], 0
    for part in parts:
        if part.end > len(text):
            break
        pieces += [text[position : part.start], part.filling]
        position = part.end
    return "".join([*pieces, text[position:]])


def at_start(part: Part, draft: Draft) -> str:
    """What stands for a part at the start: a term begins with a capital where its sentence does."""
    is_kept = part.filling == draft.text[part.start : part.end]
    changes = part.kind == "term" and not is_kept and not draft.depth and draft.text[:1].isupper()
    return capitalised(part.filling) if changes else part.filling


def _small_around(draft: Draft) -> str:
    """The draft's text in small letters, its parts as they are."""
    text = in_small_letters(draft.text)
    for part in draft.parts:
        text = text[: part.start] + draft.text[part.start : part.end] + text[part.end :]
    return text


def _stuck(part: Part, source: str) -> tuple[bool, bool]:
    """Whether a part stands close to the word before it, and to the word behind it."""
    return part.start > 0 and source[part.start - 1].isalnum(), source[part.end : part.end + 1].isalnum()


def _is_word(character: str) -> bool:
    """Whether it would run together with a part beside it: scripts that do not part their words have no such."""
    return character.isdecimal() or (character.isascii() and character.isalpha())
