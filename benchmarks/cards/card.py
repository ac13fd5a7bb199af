"""A built-in model's card and its terms, of what people wrote about it (NAME.yaml) and of what was measured."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any

import yaml

from transduce.data.builtin import BUILTIN
from transduce.errors import ConfigError, nearest
from transduce.text.language_names import language_name
from transduce.text.languages import Direction
from transduce.training.recipe import DecodingRecipe

__all__ = ["Data", "Sheet", "card", "licence_notice"]

LICENCES = {
    "CC BY 2.0": "https://creativecommons.org/licenses/by/2.0/",
    "CC BY-SA 4.0": "https://creativecommons.org/licenses/by-sa/4.0/",
}
"""Those that a model can be under, and where their text is."""


@dataclass(frozen=True, kw_only=True)
class Data:
    """Text that a model has learned from, and under which terms."""

    name: str
    pairs: int
    licence: str
    credit: str

    @classmethod
    def of(cls, described: str | dict[str, Any]) -> Data:
        """A built-in corpus by its name, or another with all that there is to say."""
        if isinstance(described, dict):
            return cls(**described)
        corpus = BUILTIN[described]
        return cls(name=corpus.name, pairs=corpus.pairs["train"], licence=corpus.licence, credit=corpus.credit)


@dataclass(frozen=True, kw_only=True)
class Sheet:
    """What NAME.yaml says."""

    name: str
    licence: str
    """Of the weights: that of the data which asks for most."""
    data: list[Data]
    trained: str
    """The command, or commands."""
    dev: str
    test: str
    """What it is measured on: CORPUS:SPLIT, or "run", what the run itself held out."""
    decoding: DecodingRecipe = field(default_factory=DecodingRecipe)
    """How it searches unless told otherwise; else as its recipe says."""
    about: str
    """What it translates well enough, and of which kind."""
    weaknesses: str
    """What it is bad at, from looking at what it writes."""
    examples: list[str] = field(default_factory=list)
    """Sentences whose translations are shown, good or bad."""

    @classmethod
    def read(cls, path: Path) -> Sheet:
        """Read a sheet; what is missing or misspelt is named."""
        if not path.is_file():
            raise ConfigError("there is no sheet for this model.", where=str(path), remedy="Write one like en-de.yaml.")
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
        known = [each.name for each in fields(cls)]
        for name in values:
            if name not in known:
                raise ConfigError(f"{name!r} is not part of a sheet.", where=str(path), remedy=nearest(name, known))
        if values.get("licence") not in LICENCES:
            raise ConfigError("its licence is not one that we know.", where=str(path), remedy=f"{list(LICENCES)}")
        for name in ("trained", "weaknesses"):
            if not values.get(name):
                remedy = "Say how it was trained, and what it is bad at, after looking at what it writes."
                raise ConfigError(f"{name!r} is empty.", where=str(path), remedy=remedy)
        decoding = DecodingRecipe(**values.pop("decoding", {}))
        data = [Data.of(each) for each in values.pop("data")]
        return cls(name=path.stem, data=data, decoding=decoding, **values)

    @property
    def languages(self) -> Direction:
        """From which into which, by the model's name."""
        return Direction.parse(self.name)

    @property
    def direction(self) -> str:
        """The same for people."""
        source, target = (language_name(each or "") for each in self.languages)
        return f"{source} → {target}"


def card(sheet: Sheet, scores: dict[str, Any], parameters: int, examples: list[tuple[str, str]]) -> str:
    """The model card, in Markdown as our page shows it: no lists in lists."""
    test = scores["test"]
    stages = [*scores["training"].get("before", []), scores["training"]]
    calibration = scores.get("calibration", {})
    off = (calibration.get("test") or calibration).get("error")
    trust = f" Its confidence is off by {off:.3f} (calibration error)." if off is not None else ""
    search = f"beam {sheet.decoding.beam}" + (" and what the hypotheses agree on (MBR)" if sheet.decoding.mbr else "")
    measured = (
        f"On {test['sentences']:,} sentences that it has not seen ({test['of']}), {search}, int8: BLEU "
        f"{test['bleu']:.1f}, chrF {test['chrf']:.1f}, TER {test['ter']:.1f}.{trust} Signatures, intervals "
        "and the dev set are in `scores.json`."
    )
    made = (
        f"{parameters:,} parameters, {_told(stages)}. The recipe{' of the last' * (len(stages) > 1)} is in "
        "`recipe.yaml`, the history in `log.jsonl`."
    )
    about = f"{sheet.about.strip()} It comes with transduce, was trained by it, and is meant for trying things out."
    data = "\n".join(f"- {_wrapped(_described(each), 2)}" for each in sheet.data)
    parts = [
        f"# {sheet.name}",
        _wrapped(f"{sheet.direction}. {about}"),
        _wrapped(f"**What it is bad at**: {sheet.weaknesses.strip()} It is not fit for anything that matters."),
        _example_table(sheet, examples),
        f"## Scores\n\n{_wrapped(measured)}",
        _score_table(scores),
        f"## Data\n\n{data}",
        f"## How it was made\n\n{_wrapped(made)}\n\n```sh\n{sheet.trained.strip()}\n```",
        f"## Licence\n\n{_wrapped(_terms(sheet))}",
    ]
    return "\n\n".join(part for part in parts if part) + "\n"


def licence_notice(sheet: Sheet) -> str:
    """What LICENSE.txt beside the weights says."""
    title = f"{sheet.name}: a translation model, {sheet.direction}"
    credits_ = "\n".join(f"  {each.name}: {each.licence}\n    {each.credit}" for each in sheet.data)
    changes = "Its weights were learned from these texts, which themselves are not part of it."
    return (
        f"{title}\n{'=' * len(title)}\n\nLicence   {sheet.licence}, {LICENCES[sheet.licence]}\n"
        f"Made by   the transduce authors\n\n{_wrapped(_terms(sheet))}\n\n{changes}\n\n{credits_}\n"
    )


def _terms(sheet: Sheet) -> str:
    alike = "SA" in sheet.licence
    return (
        f"The weights and all files beside them are under {sheet.licence} <{LICENCES[sheet.licence]}>, the licence of "
        f"{'a part of ' if alike and len(sheet.data) > 1 else ''}the text that they were learned from: name the sources"
        + (", and pass on what you make of them under the same licence." if alike else ".")
    )


def _told(stages: list[dict[str, Any]]) -> str:
    return ", then ".join(
        f"{each['steps']:,} steps in {each['minutes']:g} minutes on a CPU, commit {each['commit']}" for each in stages
    )


def _described(data: Data) -> str:
    return f"{data.name}: {data.pairs:,} pairs. {data.licence}; credit: {data.credit}."


def _score_table(scores: dict[str, Any]) -> str:
    rows = [(f"{label} words", count, bleu) for label, count, bleu in scores["test"]["bleu_by_source_words"] if count]
    rows += [(f"{count} sentences in a row", each["texts"], each["bleu"]) for count, each in scores["joined"].items()]
    lines = [f"| {label} | {count:,} | {bleu:.1f} |" for label, count, bleu in rows]
    return "\n".join(["| text | how many | BLEU |", "|---|---|---|", *lines])


def _example_table(sheet: Sheet, examples: list[tuple[str, str]]) -> str:
    source, target = (language_name(each or "") for each in sheet.languages)
    lines = [f"| {text} | {translation} |" for text, translation in examples]
    return "\n".join([f"| {source} | {target} |", "|---|---|", *lines]) if lines else ""


def _wrapped(text: str, indent: int = 0) -> str:
    """A paragraph, or several, in lines that are short enough to read in a terminal."""
    paragraphs = text.strip().split("\n\n")
    space = " " * indent
    return "\n\n".join(
        textwrap.fill(each, 116, subsequent_indent=space, break_long_words=False, break_on_hyphens=False)
        for each in paragraphs
    )
