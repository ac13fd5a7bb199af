"""A vocabulary with the ids that someone else has given, and how it becomes one of ours."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from transduce.errors import BundleError, ConfigError, nearest
from transduce.interop.renumber import Renumbering
from transduce.text import Vocabularies
from transduce.text.foreign import ForeignTokenizer, foreign_document
from transduce.text.frame import SOURCE, TARGET, Frame
from transduce.text.languages import Direction, same_language
from transduce.text.tokenizer import MASK, UNKNOWN

__all__ = ["TheirVocabulary"]

Describe = Callable[[Renumbering], Mapping[str, Mapping[str, Any]]]


@dataclass(frozen=True)
class TheirVocabulary:
    """A vocabulary with ids as they were given elsewhere."""

    names: Sequence[str]
    """The piece of each id."""
    special: frozenset[int]
    """Ids that are no text."""
    eos: int
    processors: Describe
    """How texts are cut, for a file of ours, once ids are renumbered."""
    pad: int | None = None
    unknown: int | None = None
    languages: Mapping[str, int] = field(default_factory=dict)
    """The ids of language codes."""
    before_source: Sequence[int | str] = ()
    after_source: Sequence[int | str] = ()
    """What stands around a source but for its end; SOURCE and TARGET for language codes."""
    before_target: Sequence[int | str] = ()
    spoken: Direction = field(default_factory=Direction)
    """The languages that its files name."""
    lang_after_end: bool = False
    """Whether a source ends with its language's code behind the end of the sentence, as those of mBART do."""
    mask: int | None = None
    apart: TheirVocabulary | None = None
    """That of the target, where it has one of its own."""

    def widened(self, size: int) -> TheirVocabulary:
        """With names for all rows of a model, which may have more than its tokenizer names, but not fewer."""
        if len(self.names) > size:
            raise BundleError(
                f"the tokenizer has {len(self.names)} pieces, the model {size}.", remedy="Copy the model again."
            )
        unnamed = range(len(self.names), size)
        names = [*self.names, *(f"<unused {index}>" for index in unnamed)]
        return replace(self, names=names, special=self.special | set(unnamed))

    def direction(self, asked: Direction | None) -> Direction:
        """From which language into which: as asked, or as its files say."""
        source, target = asked or Direction()
        chosen = Direction(source or self.spoken.source, target or self.spoken.target)
        if not self.languages:
            return chosen
        sides = {SOURCE: chosen.source, TARGET: chosen.target}
        used = {*self.before_source, *self.before_target, *([SOURCE] if self.lang_after_end else [])}
        found = {side: same_language(name, self.languages) if name else None for side, name in sides.items()}
        for side, name in sides.items():
            if side in used and found[side] is None:
                what = "reads" if side == SOURCE else "writes"
                raise ConfigError(
                    f"the model {what} many languages, and not {name!r}."
                    if name
                    else f"the model {what} many languages, and which is not said.",
                    remedy=f"Give --languages, such as {_example(self.languages)}. "
                    + (nearest(name, self.languages) if name else f"It knows: {', '.join(self.languages)}."),
                )
        return Direction(found[SOURCE] or chosen.source, found[TARGET] or chosen.target)

    def document(self, numbers: Renumbering, direction: Direction) -> bytes:
        """The contents of a file of ours."""
        names, ours = list(numbers.names(self.names)), numbers.ours()
        tagged = any(isinstance(each, str) for each in (*self.before_source, *self.before_target))
        languages = {language: names[ours[index]] for language, index in self.languages.items()} if tagged else {}
        if self.mask is not None:
            names[ours[self.mask]] = MASK
        special = {place for place in numbers.copies | {ours[index] for index in self.special} if place > UNKNOWN}

        def pieces(ids: Sequence[int | str]) -> list[str]:
            return [each if isinstance(each, str) else names[ours[each]] for each in ids]

        frame = Frame(
            pieces(self.before_source),
            pieces(self.after_source),
            pieces(self.before_target),
            languages,
            direction.source if direction.source in languages else None,
            direction.target if direction.target in languages else None,
        )
        return foreign_document(names, special, self.processors(numbers), frame)

    def vocabularies(self, numbers: Sequence[Renumbering], direction: Direction) -> Vocabularies:
        """Ours, with ids that are renumbered: those of both sides, or of each."""
        source = ForeignTokenizer(self.document(numbers[0], direction))
        if self.apart is None:
            return Vocabularies(source, source.other_side())
        return Vocabularies(source, ForeignTokenizer(self.apart.document(numbers[-1], direction), "target"))


def _example(languages: Mapping[str, int]) -> str:
    names = list(languages)
    return f"{names[0]}-{names[-1]}"
