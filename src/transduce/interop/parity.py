"""Does an exported model translate as ours does? The same sentences through both, and what came out, as a report."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from transduce.evaluation import Table, quick_bleu
from transduce.storage import storage_errors, write_whole
from transduce.translator import Translator

__all__ = ["Difference", "Parity", "parity", "parity_table"]

EXAMPLES = 5
"""Differences that a report shows."""


@dataclass(frozen=True)
class Difference:
    """A sentence that the two translate differently."""

    source: str
    ours: str
    exported: str


@dataclass(frozen=True)
class Parity:
    """How an exported model's translations compare with those of PyTorch in float32."""

    sentences: int
    identical: int
    """Sentences of which both write the same text, to the letter."""
    largest_score_difference: float
    """Among those; scores are log-probabilities over length penalty."""
    bleu: float | None = None
    """Ours, where references are known."""
    exported_bleu: float | None = None
    other_meanings: Mapping[str, str] = field(default_factory=dict)
    """Settings that mean something else to the tool that the model was exported for, and what."""
    differences: list[Difference] = field(default_factory=list)
    """The first few."""

    @property
    def share_identical(self) -> float:
        """From 0 to 1."""
        return self.identical / self.sentences

    @property
    def bleu_difference(self) -> float | None:
        """What the export gains or, below 0, costs."""
        return None if self.bleu is None or self.exported_bleu is None else self.exported_bleu - self.bleu

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        derived = {"share_identical": self.share_identical, "bleu_difference": self.bleu_difference}
        return asdict(self) | derived

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        with storage_errors(path.parent):
            write_whole(path, json.dumps(self.as_dict(), ensure_ascii=False, indent=2).encode() + b"\n")


def parity(
    ours: Translator,
    exported: Translator,
    sources: Sequence[str],
    references: Sequence[str] | None = None,
    to: str | None = None,
    other_meanings: Mapping[str, str] | None = None,
    **options: Any,
) -> Parity:
    """Translate the same sentences with both, with the same options, and compare."""
    ours_found, exported_found = (each.translate(sources, to, **options) for each in (ours, exported))
    found = list(zip(sources, ours_found, exported_found, strict=True))
    same = [(one, other) for _, one, other in found if one.text == other.text]
    differences = [Difference(source, one.text, other.text) for source, one, other in found if one.text != other.text]
    scores: list[float | None] = [None, None]
    if references is not None:
        scores = [quick_bleu([each.text for each in side], references) for side in (ours_found, exported_found)]
    return Parity(
        sentences=len(found),
        identical=len(same),
        largest_score_difference=max((abs(one.score - other.score) for one, other in same), default=0.0),
        bleu=scores[0],
        exported_bleu=scores[1],
        other_meanings=other_meanings or {},
        differences=differences[:EXAMPLES],
    )


def parity_table(
    report: Parity, title: str = "Against PyTorch in float32", scores: str = "BLEU, PyTorch → exported"
) -> Table:
    """The report as rows of text."""
    rows = [
        ["Sentences", f"{report.sentences:,}"],
        ["Identical translations", f"{report.share_identical:.1%} ({report.identical:,})"],
        ["Largest difference of their scores", f"{report.largest_score_difference:.1g}"],
    ]
    if report.bleu is not None and report.exported_bleu is not None:
        change = f"{report.exported_bleu - report.bleu:+.2f}"
        rows.append([scores, f"{report.bleu:.2f} → {report.exported_bleu:.2f} ({change})"])
    return Table([title, ""], rows)
