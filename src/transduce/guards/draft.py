"""A sentence on its way to its translation, and what texts are put together of."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal

from transduce.confidence import Signs
from transduce.translation import Alternative, Flag, Translation, joined

if TYPE_CHECKING:
    from transduce.guards.glossary import Term
    from transduce.guards.parts import Part

__all__ = ["Assembly", "Draft", "Manner"]

Manner = Literal["plain", "wide", "firm"]
"""How to decode: as asked; with more hypotheses to choose from; or so that nothing can be repeated and run on."""


@dataclass(slots=True, eq=False)
class Draft:
    """A sentence that an engine decodes, perhaps more than once, until something good is found."""

    text: str
    """The sentence, as it was given."""
    parts: list[Part] = field(default_factory=list)
    """What must survive of it, in order."""
    terms: list[tuple[Part, Term]] = field(default_factory=list)
    """Terms of the glossary, in order."""
    prefix: list[int] = field(default_factory=list)
    """What its translation is to begin with."""
    capitals: bool = False
    """Whether it is in capitals, which the model does not know: it reads small letters instead."""
    depth: int = 0
    """How often it has been cut out of something larger."""
    slots: dict[str, Part] = field(default_factory=dict)
    """Which slot stands for which part in what is decoded."""
    manner: Manner = "plain"
    ids: list[int] = field(default_factory=list)
    """What is decoded."""
    tokens: list[int] = field(default_factory=list)
    """What was written of it."""
    signs: Signs | None = None
    """What that can be judged by."""
    found: list[Alternative] = field(default_factory=list)
    """Its translations, best first, once it is done."""
    flags: list[Flag] = field(default_factory=list)
    pieces: Assembly | None = None
    """What it has been cut into, where it could not be translated whole."""
    tries: int = 0
    redone: int = 0
    """Pieces of it that were decoded more than once."""

    @property
    def times_redone(self) -> int:
        """1 if it was decoded more than once; of a long sentence, how many of its pieces were."""
        return self.redone if not self.tries else int(self.tries > 1 or self.pieces is not None)


class Assembly:
    """A text, or a sentence that was cut: what is copied, and drafts of what is translated, in order."""

    __slots__ = ("items",)

    def __init__(self, items: list[str | Draft]) -> None:
        self.items = items

    def drafts(self) -> Iterator[Draft]:
        """All that is decoded, also within drafts that have been cut."""
        for item in self.items:
            if isinstance(item, Draft):
                if item.pieces is None:
                    yield item
                else:
                    yield from item.pieces.drafts()

    def translation(self) -> Translation:
        """All of it put together; the n-th best way joins the n-th best ways of its drafts."""
        if len(self.items) == 1 and isinstance(draft := self.items[0], Draft):
            found = draft.found
            return Translation(
                found[0].text, found[0].score, found, found[0].confidence, draft.flags, draft.times_redone
            )
        drafts = [item for item in self.items if isinstance(item, Draft)]
        alternatives = joined([draft.found for draft in drafts], self._put_together)
        flags = list(dict.fromkeys(flag for draft in drafts for flag in draft.flags))
        redone = sum(draft.times_redone for draft in drafts)
        best = alternatives[0]
        return Translation(best.text, best.score, alternatives, best.confidence, flags, redone)

    def _put_together(self, translations: list[str]) -> str:
        rest = iter(translations)
        return "".join(next(rest) if isinstance(item, Draft) else item for item in self.items)
