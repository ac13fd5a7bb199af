"""Parts of a sentence that must come out as they went in: addresses, placeholders, tags, emoji, numbers."""

from __future__ import annotations

import re
from typing import Literal, NamedTuple

__all__ = ["Part", "PartKind", "bare", "edges", "find_parts"]

PartKind = Literal["keep", "code", "tag", "url", "email", "placeholder", "emoji", "slot", "number", "term"]

EMOJI = "[\u00a9\u00ae\u2122\u2190-\u21ff\u2300-\u23ff\u25a0-\u27bf\u2b00-\u2bff\U0001f000-\U0001faff]"
JOINED = "[\u200d\ufe0f\u20e3\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]"
"""What goes on with an emoji: joiners, variants, shades of skin, flags of regions."""
DOMAINS = "com|org|net|edu|gov|info|app|dev|eu|io|ai|co|de|at|ch|fr|uk|us|es|it|nl|pl|gh|ke|ng|za|in|jp|cn|br|ca|au"
URL = r"""[^\s<>"“”„]"""

# In order: of two kinds that begin at the same place, the first. Repetitions are bounded, or start at the start of a
# word only: the time grows with the length of a text and not with its square.
KINDS: dict[PartKind, str] = {
    "keep": r"<keep>.*?</keep>",
    "code": r"`[^`\n]{1,200}`|(?<![\w/\\.])(?:[A-Za-z]:\\|\.{0,2}/|~/)[\w.-]{1,80}(?:[\\/][\w.-]{1,80})+",
    "tag": r"</?[A-Za-z][\w:.-]{0,40}(?:\s[^<>]{0,500})?/?>|<!--.{0,500}?-->"
    r"|&(?:[A-Za-z][A-Za-z0-9]{1,30}|\#\d{1,7}|\#[xX][0-9a-fA-F]{1,6});",
    "email": r"(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,63}(?:\.[\w-]{1,63})+",
    "url": rf"(?<!\w)(?:[A-Za-z][A-Za-z0-9+.-]{{1,15}}://|www\.|mailto:){URL}+"
    rf"|(?<![\w@.-])(?:[A-Za-z0-9-]{{1,63}}\.){{1,8}}(?:{DOMAINS})(?![\w-])(?:[/?\#]{URL}*)?",
    "placeholder": r"\{\{[^{}\n]{1,80}\}\}|\$\{[^{}\n]{1,80}\}|\{[\w.:!,<>^+\[\]-]{0,60}\}"
    r"|%\(\w{1,60}\)[-+\#0-9.]{0,8}[a-zA-Z]|%\d{1,2}\$[sd@]|%[-+\#0-9.]{0,8}[sdifgxXeEouc@](?!\w)",
    "slot": r"⟦\d{1,3}⟧",
    "emoji": rf"[0-9\#*]\ufe0f?\u20e3|(?:{EMOJI}{JOINED}*)+",
    "number": r"(?<!\w)\d{1,3}(?:[ \u00a0\u202f]\d{3})+(?!\w)"
    r"|(?<![A-Za-z_\d])[A-Za-z_]{0,40}?\d[A-Za-z_\d]*(?:[.,:'’/–-]\d[A-Za-z_\d]*)*",
}
PART = re.compile("|".join(f"(?P<{kind}>{pattern})" for kind, pattern in KINDS.items()), re.DOTALL | re.VERBOSE)
SUSPECT = re.compile(rf"[\d<&{{%@⟦`/\\]|www\.|mailto:|\w\.[a-z]|{EMOJI}")
"""What every part holds somewhere; most sentences hold none of it."""
CLOSING = ".,;:!?'’»…"
"""Punctuation that ends a sentence or a clause and not the address before it."""
BULLET = re.compile(r"[-*•‣◦·–—▪]+\s+")
PAIRS = {")": "(", "]": "["}


class Part(NamedTuple):
    """A part of a sentence: where it stands, what it is, and what stands for it in the translation."""

    start: int
    end: int
    kind: PartKind
    filling: str


def find_parts(text: str) -> list[Part]:
    """What must survive of a text, in order."""
    if not SUSPECT.search(text):
        return []
    parts: list[Part] = []
    position = 0
    while found := PART.search(text, position):
        kind: PartKind = found.lastgroup  # type: ignore[assignment]
        start, end = found.span()
        if kind == "url" or (kind == "code" and text[start] != "`"):
            end = start + (len(_without_closing(text[start:end])) or 1)
        filling = text[start:end]
        if kind == "keep":
            filling = filling[len("<keep>") : -len("</keep>")]
        parts.append(Part(start, end, kind, filling))
        position = end
    return parts


def bare(text: str, parts: list[Part]) -> str:
    """A text without some of its parts: what is left to translate."""
    pieces, position = [], 0
    for part in parts:
        pieces.append(text[position : part.start])
        position = part.end
    return " ".join([*pieces, text[position:]])


def edges(text: str, parts: list[Part]) -> tuple[int, int]:
    """Where a sentence starts and ends without the bullets, tags and emoji around it, which it can do without."""
    start, end = 0, len(text)
    if bullet := BULLET.match(text):
        start = bullet.end()
    for part in parts:
        if part.kind not in ("tag", "emoji") or text[start : part.start].strip():
            break
        start = part.end
    for part in reversed(parts):
        if part.kind not in ("tag", "emoji") or part.start < start or text[part.end : end].strip():
            break
        end = part.start
    core = text[start:end].strip()
    start = text.index(core, start)
    return start, start + len(core)


def _without_closing(address: str) -> str:
    """An address without the punctuation of the sentence that it stands in."""
    while address:
        last = address[-1]
        is_open = last in PAIRS and address.count(last) > address.count(PAIRS[last])
        if last not in CLOSING and not is_open:
            break
        address = address[:-1]
    return address
