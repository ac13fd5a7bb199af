"""Does an exported model translate as ours does? The same sentences through both, and what came out, as a report."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from transduce.evaluation import Table, quick_bleu
from transduce.storage import storage_errors, write_whole
from transduce.text.tokenizer import EOS
from transduce.translation import Translation
from transduce.translator import Translator

if TYPE_CHECKING:
    from torch import Tensor

__all__ = ["Difference", "Logits", "Parity", "Translates", "largest_logit_difference", "parity", "parity_table"]

EXAMPLES = 5
"""Differences that a report shows."""
LOGIT_SENTENCES = 20
"""Sentences whose logits are compared: each step has a number for every token of the vocabulary."""
MASKED = -1e30
"""Logits below are no numbers of the model: someone has forbidden the token."""

Logits = Callable[[Sequence[Sequence[int]], Sequence[int]], "list[tuple[list[int], Tensor]]"]
"""For sources (ids without end of sentence), and what is read before anything is written: the tokens that an exported
model writes, and the logits [T,V] of each."""


class Translates(Protocol):
    """Whatever translates texts: our translator, or an exported model as its own tool would call it."""

    def translate(self, text: Sequence[str], to: str | None = None, **options: Any) -> list[Translation]:
        """Translate texts, in their order."""


@dataclass(frozen=True)
class Difference:
    """A sentence that the two translate differently."""

    source: str
    ours: str
    exported: str


@dataclass(frozen=True)
class Parity:
    """How what an exported model makes of texts or pictures compares with what PyTorch does in float32."""

    sentences: int
    """How many texts, or pictures, were compared."""
    identical: int
    """Of which both make the same, to the letter."""
    largest_score_difference: float | None = None
    """Among translations that are; scores are log-probabilities over length penalty."""
    largest_logit_difference: float | None = None
    """Of any token of the vocabulary at any step of some of the sentences; None where the tool shows no logits."""
    identical_ids: int | None = None
    """Texts to which the other tool's own tokenizer gives the ids that ours gives (pictures: the same pixels); None
    where ours is used there too."""
    compared: str = "translations"
    """What both make of a text."""
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
        if self.identical_ids is not None:
            derived["share_identical_ids"] = self.identical_ids / self.sentences
        return asdict(self) | derived

    def write(self, path: Path) -> None:
        """Write it as JSON."""
        with storage_errors(path.parent):
            write_whole(path, json.dumps(self.as_dict(), ensure_ascii=False, indent=2).encode() + b"\n")


def parity(
    ours: Translator,
    exported: Translates,
    sources: Sequence[str],
    references: Sequence[str] | None = None,
    to: str | None = None,
    other_meanings: Mapping[str, str] | None = None,
    logits: Logits | None = None,
    **options: Any,
) -> Parity:
    """Translate the same sentences with both, with the same options, and compare; `logits` are the exported model's."""
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
        largest_logit_difference=None if logits is None else largest_logit_difference(ours, logits, sources, to),
        bleu=scores[0],
        exported_bleu=scores[1],
        other_meanings=other_meanings or {},
        differences=differences[:EXAMPLES],
    )


def largest_logit_difference(
    ours: Translator, exported: Logits, sources: Sequence[str], to: str | None = None
) -> float:
    """How far the logits of an exported model are from ours at most, along what it writes of some of the sentences."""
    import torch

    count = min(LOGIT_SENTENCES, len(sources))
    chosen = [sources[place * len(sources) // count] for place in range(count)]
    known = ours.bundle.config.target_languages
    language = to or known[0] if known else None
    start = ours.vocabularies.start(language)
    encoded = [ids for ids in ours.vocabularies.encode_sources(chosen, language) if ids]
    model = ours.torch_engine.model
    largest = 0.0
    for source, (tokens, logits_TV) in zip(encoded, exported(encoded, start), strict=True):
        target = [model.bos_id, *start, *tokens[:-1]]
        with torch.inference_mode():
            ours_TV = model(torch.tensor([[*source, EOS]]), torch.tensor([target]))[0, len(start) :]
        differences = (ours_TV - logits_TV)[logits_TV > MASKED]
        largest = max(largest, float(differences.abs().max()))
    return largest


def parity_table(
    report: Parity, title: str = "Against PyTorch in float32", scores: str = "BLEU, PyTorch → exported"
) -> Table:
    """The report as rows of text."""
    things = {"translations": "Sentences", "classes of pictures": "Pictures"}.get(report.compared, "Texts")
    rows = [[things, f"{report.sentences:,}"]]
    if report.identical_ids is not None:
        share, read = report.identical_ids / report.sentences, "pixels" if things == "Pictures" else "token ids"
        rows.append([f"Identical {read}", f"{share:.1%} ({report.identical_ids:,})"])
    rows.append([f"Identical {report.compared}", f"{report.share_identical:.1%} ({report.identical:,})"])
    if report.largest_score_difference is not None:
        rows.append(["Largest difference of their scores", f"{report.largest_score_difference:.1g}"])
    if report.largest_logit_difference is not None:
        rows.append(["Largest difference of logits", f"{report.largest_logit_difference:.1g}"])
    if report.bleu is not None and report.exported_bleu is not None:
        change = f"{report.exported_bleu - report.bleu:+.2f}"
        rows.append([scores, f"{report.bleu:.2f} → {report.exported_bleu:.2f} ({change})"])
    return Table([title, ""], rows)
