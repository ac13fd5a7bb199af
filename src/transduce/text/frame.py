"""What stands around the texts that a model reads and writes, where it has learned so: language codes and the like."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from transduce.errors import InputError, nearest

__all__ = ["SOURCE", "TARGET", "Frame"]

SOURCE, TARGET = "{source}", "{target}"
"""What stands in a frame for the tag of the language that is read, and of the one that is written."""


@dataclass(frozen=True)
class Frame:
    """Names of pieces that stand around texts. The end of a sentence comes by itself and is no part of it."""

    before_source: Sequence[str] = ()
    after_source: Sequence[str] = ()
    before_target: Sequence[str] = ()
    """What the decoder reads before it writes, behind the start."""
    languages: Mapping[str, str] = field(default_factory=dict)
    """The tag of each language that the model knows."""
    source: str | None = None
    """The language that is read, one of these."""
    target: str | None = None
    """The language that is written unless told otherwise."""

    @classmethod
    def parse(cls, values: Any) -> Frame:
        """Of what `as_dict` gave."""
        try:
            names = [values[name] for name in ("before_source", "after_source", "before_target")]
            languages = values["languages"]
            texts = [each for side in names for each in side] + [*languages, *languages.values()]
            if not all(isinstance(each, str) for each in texts):
                raise TypeError
            before, after, start = map(tuple, names)
            frame = cls(before, after, start, dict(languages), values["source"], values["target"])
        except (KeyError, TypeError, AttributeError) as error:
            raise InputError("what stands around its texts is not said as it should be.") from error
        for language in (frame.source, frame.target):
            if language is not None and language not in frame.languages:
                raise InputError(f"its language {language!r} has no tag.", remedy=nearest(str(language), languages))
        return frame

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "before_source": list(self.before_source),
            "after_source": list(self.after_source),
            "before_target": list(self.before_target),
            "languages": dict(self.languages),
            "source": self.source,
            "target": self.target,
        }

    def around_source(self, to: str | None) -> tuple[list[str], list[str]]:
        """The pieces before and after a source that is to become a language."""
        return self._filled(self.before_source, to), self._filled(self.after_source, to)

    def start(self, to: str | None) -> list[str]:
        """The pieces that the decoder reads before it writes a language."""
        return self._filled(self.before_target, to)

    def _filled(self, names: Sequence[str], to: str | None) -> list[str]:
        languages = {SOURCE: self.source, TARGET: to or self.target}
        return [self._tag(languages[name]) if name in languages else name for name in names]

    def _tag(self, language: str | None) -> str:
        if language is None or language not in self.languages:
            raise InputError(
                f"the vocabulary has no tag for {language!r}.", remedy=nearest(str(language), self.languages)
            )
        return self.languages[language]
