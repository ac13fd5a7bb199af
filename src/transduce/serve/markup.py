"""Text within HTML: what is translated is the text between tags, and the tags stay as they are."""

from __future__ import annotations

from html import escape, unescape
from html.parser import HTMLParser

__all__ = ["Markup"]

UNTOUCHED = {"script", "style", "code", "pre", "textarea"}
VOID = {"area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"}
"""Elements that have no end."""


class Markup(HTMLParser):
    """HTML taken apart: `texts` to translate, and `joined` to put them back."""

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=False)
        self.texts: list[str] = []
        self._pieces: list[str | None] = []  # None stands for the next text
        self._within: list[str] = []
        self._text: list[str] = []
        self.feed(html)
        self._text.append(self.rawdata)  # a tag that never ends is text
        self._end_text()

    def joined(self, translations: list[str]) -> str:
        """The HTML with other texts in place of its own."""
        texts = iter(translations)
        return "".join(escape(next(texts), quote=False) if piece is None else piece for piece in self._pieces)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag as it is written."""
        self._keep(self.get_starttag_text() or "")
        marked = ("translate", "no") in attrs or "notranslate" in (dict(attrs).get("class") or "").split()
        # Inside of what is not touched, elements of the same name must end before it does.
        if tag in UNTOUCHED or (marked and tag not in VOID) or (self._within and tag == self._within[-1]):
            self._within.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Keep a tag as it is written."""
        self._keep(self.get_starttag_text() or "")

    def handle_endtag(self, tag: str) -> None:
        """Keep the end of a tag."""
        self._keep(f"</{tag}>")
        if self._within and self._within[-1] == tag:
            self._within.pop()

    def handle_data(self, data: str) -> None:
        """Take text, unless it is code."""
        if self._within:
            self._keep(data)
        else:
            self._text.append(data)

    def handle_entityref(self, name: str) -> None:
        """Take a named character."""
        self._reference(f"&{name};")

    def handle_charref(self, name: str) -> None:
        """Take a numbered character."""
        self._reference(f"&#{name};")

    def handle_comment(self, data: str) -> None:
        """Keep a comment."""
        self._keep(f"<!--{data}-->")

    def handle_decl(self, decl: str) -> None:
        """Keep a declaration."""
        self._keep(f"<!{decl}>")

    def unknown_decl(self, data: str) -> None:
        """Keep what we do not know."""
        self._keep(f"<![{data}]>")

    def handle_pi(self, data: str) -> None:
        """Keep an instruction."""
        self._keep(f"<?{data}>")

    def _reference(self, written: str) -> None:
        if self._within:
            self._keep(written)
        else:
            self._text.append(unescape(written))

    def _keep(self, piece: str) -> None:
        self._end_text()
        self._pieces.append(piece)

    def _end_text(self) -> None:
        text = "".join(self._text)
        self._text = []
        if not any(map(str.isalnum, text)):  # nothing to translate
            self._pieces.append(escape(text, quote=False))
        else:
            self.texts.append(text)
            self._pieces.append(None)
