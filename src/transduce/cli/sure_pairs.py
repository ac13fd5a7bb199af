"""`transduce translate --sure`: of what was translated, the pairs that another model may learn from."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from transduce.errors import ConfigError

if TYPE_CHECKING:
    from transduce.translator import Translation, Translator

__all__ = ["SureOption", "SurePairs"]

SureOption = Annotated[
    float | None,
    typer.Option(
        "--sure",
        min=0,
        max=1,
        help="Write source, tab and translation of those with at least this confidence and no warning, and leave out "
        "the rest: a .tsv that another model can learn from.",
        show_default=False,
    ),
]


class SurePairs:
    """Source and translation of lines whose translation has at least so much confidence."""

    def __init__(self, least: float, translator: Translator) -> None:
        if translator.bundle.config.confidence is None or not translator.engine.calibrated:
            raise ConfigError(
                "how sure these translations are is not known.",
                where=str(translator.path),
                remedy="--sure is for one model that has learned it: transduce calibrate MODEL SOURCE TARGET",
            )
        self._least = least
        self._kept = self._seen = 0

    def of(self, line: str, translation: Translation) -> list[str]:
        """The pair of a line, or nothing."""
        if not line.strip():
            return []
        self._seen += 1
        sure = translation.confidence is not None and translation.confidence >= self._least
        if not sure or translation.warnings or not translation.text.strip():
            return []
        self._kept += 1
        return ["\t".join(text.replace("\t", " ") for text in (line, translation.text)) + "\n"]

    def count(self) -> None:
        """Say how many there were."""
        typer.echo(f"transduce: {self._kept:,} of {self._seen:,} lines are that sure.", err=True)
