"""What adapting a translator has changed: scores on its old dev set and on the new one, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from rich.console import Console

    from transduce.bundle import Bundle
    from transduce.data.prepare import Prepared
    from transduce.translator import Translator

__all__ = ["report_adaptation"]

MOST = 1000
"""Sentences of a dev set that are translated: what tells a loss from chance, in little time."""
DROP = 1.0
"""BLEU on the old dev set whose loss is worth a warning."""


class _DevSet(NamedTuple):
    """Texts, what they should become, and in which language each; None where a model knows one only."""

    sources: Sequence[str]
    references: Sequence[str]
    languages: Sequence[str] | None = None


def report_adaptation(console: Console, old: Bundle, new: Bundle, prepared: Prepared) -> None:
    """Translate both dev sets with both models, print the scores and keep them in the new model's scores.json."""
    import json

    from transduce.cli.calibrate import languages_asked
    from transduce.storage import storage_errors, write_whole
    from transduce.translator import Translator

    kept = _old_dev_set(old)
    if old.config.task != "translation" and kept is None:  # what was pre-trained could not translate before
        return
    sets: dict[str, _DevSet] = {}
    if kept is not None:
        sets["old dev set"] = kept
    sources, references = prepared.dev_sources[:MOST], prepared.dev_references[:MOST]
    sets["new dev set"] = _DevSet(sources, references, languages_asked(new, prepared.dev, range(len(sources))))
    scores: dict[str, dict[str, float]] = {}
    with console.status("Measuring before and after …"):
        for name, bundle in (("before", old), ("after", new)):
            translator = Translator(bundle)
            scores[name] = {each: _bleu(translator, texts) for each, texts in sets.items()}
    for name, values in scores.items():
        console.print(f"{name}: " + ", ".join(f"BLEU {value:.1f} on the {each}" for each, value in values.items()))
    if "old dev set" not in sets:
        console.print(f"What {old.path} was measured on is not there, so what it may have forgotten is not known.")
    elif (lost := scores["before"]["old dev set"] - scores["after"]["old dev set"]) > DROP:
        console.print(
            f"[bold]Warning:[/bold] the model has lost {lost:.1f} BLEU on what it could do before. Mix old text into "
            "the new (several corpora, --weights), or train for fewer steps."
        )
    path = new.path / "scores.json"
    with storage_errors(new.path):
        values = json.loads(path.read_text(encoding="utf-8"))
        values["adapted"] = {"from": str(old.path), "bleu": scores}
        write_whole(path, (json.dumps(values, ensure_ascii=False, indent=2) + "\n").encode())


def _bleu(translator: Translator, texts: _DevSet) -> float:
    """Of a dev set, each text in the language that it is asked for in."""
    from transduce.evaluation import quick_bleu

    languages: Sequence[str | None] = texts.languages or [None] * len(texts.sources)
    written = [""] * len(texts.sources)
    for language in dict.fromkeys(languages):
        places = [place for place, each in enumerate(languages) if each == language]
        found = translator.translate([texts.sources[place] for place in places], language)
        for place, translation in zip(places, found, strict=True):
            written[place] = translation.text
    return quick_bleu(written, list(texts.references))


def _old_dev_set(old: Bundle) -> _DevSet | None:
    """What the old model was measured on: kept by its run, or that of the built-in corpus of its languages."""
    from transduce.bundle import builtin_folder
    from transduce.cli.calibrate import languages_asked
    from transduce.data.builtin import BUILTIN, builtin_corpus
    from transduce.data.shards import Pairs

    folder = old.path / "run" / "prepared"
    kept = [folder / f"dev.{side}" for side in ("source", "target")]
    if all(path.is_file() for path in kept):
        sides = [path.read_text(encoding="utf-8").split("\n")[:-1][:MOST] for path in kept]
        return _DevSet(sides[0], sides[1], languages_asked(old, Pairs(folder / "dev"), range(len(sides[0]))))
    if old.path.parent == builtin_folder():
        for corpus in BUILTIN.values():
            if (corpus.source_language, corpus.target_language) == (
                old.config.source_language,
                old.config.target_language,
            ):
                pairs = list(builtin_corpus(corpus.name, "dev").pairs())[:MOST]
                return _DevSet([pair.source for pair in pairs], [pair.target for pair in pairs])
    return None
