"""Make a built-in model of a finished run: half-precision weights, compiled int8, measured, with history and card.

Run it with: python benchmarks/build_builtin_model.py RUN NAME --commit COMMIT
for example: python benchmarks/build_builtin_model.py runs/en-twi en-twi --commit a527757

RUN is a directory that `transduce train` has finished, or a built-in model that is to be measured again. Runs that it
went on from (`train --from`) are named by --before, the first one first: their history is told too. What people have to
say of the model (its data and their terms, what it is measured on, what it is bad at) is in cards/NAME.yaml.
"""

from __future__ import annotations

import argparse
import json
import shutil
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from cards.card import Sheet, card, licence_notice
from joined import as_one, as_usual, joined
from transduce.bundle import Bundle, builtin_folder
from transduce.calibration import calibrate
from transduce.catalogue import ListedModel
from transduce.data.builtin import builtin_corpus
from transduce.data.corpus import Corpus, Pair
from transduce.decoding import DecodingOptions
from transduce.evaluation import by_length, evaluate, quick_bleu
from transduce.interop.ctranslate2 import compile_model
from transduce.text import Normalisation, normalise
from transduce.training.recipe import Recipe
from transduce.translator import Translator

CARDS = Path(__file__).parent / "cards"
LARGEST = 12.0
"""Megabytes of a built-in model."""
KEPT_STEPS = 100
"""Steps of the log that are kept beside the model, about."""

Texts = tuple[list[str], list[str]]
"""Sources and references."""


def main() -> None:
    """Write assets/models/NAME, and print what it scores."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=Path, help="a finished run, or a model directory with its history")
    parser.add_argument("name", help="such as en-twi; cards/NAME.yaml describes it")
    parser.add_argument("--commit", help="that it was trained with; else the one that RUN states")
    parser.add_argument("--before", type=Path, nargs="+", default=[], help="models that RUN went on from, or runs")
    parser.add_argument("--dev", type=Path, nargs=2, help="text files instead of the dev set that the card names")
    parser.add_argument("--test", type=Path, nargs=2, help="text files instead of the test set that the card names")
    parser.add_argument("--output", type=Path, default=builtin_folder(), help="the folder to put the model into")
    given = parser.parse_args()
    sheet = Sheet.read(CARDS / f"{given.name}.yaml")
    trained = Bundle.open(given.run)
    if given.commit is None and "training" not in trained.scores():
        parser.error("--commit is missing: which one was it trained with?")
    # The card says what it was really measured on.
    named = {part: " + ".join(path.name for path in files) for part in ("dev", "test") if (files := vars(given)[part])}
    sheet = replace(sheet, **named)
    dev = texts_of(sheet.dev, given.run, given.dev)
    test = texts_of(sheet.test, given.run, given.test)
    aside = given.output / f".{given.name}.part"
    shutil.rmtree(aside, ignore_errors=True)
    try:
        build(aside, [*map(Bundle.open, given.before), trained], sheet, given.commit, dev, test)
        size = ListedModel(given.name, Bundle.open(aside)).megabytes
        if size > LARGEST:
            raise SystemExit(f"{given.name} has {size:.1f} MB; a built-in model may have {LARGEST:.0f}.")
        shutil.rmtree(given.output / given.name, ignore_errors=True)
        aside.rename(given.output / given.name)
    finally:
        shutil.rmtree(aside, ignore_errors=True)
    print(f"{given.output / given.name}: {size:.1f} MB")


def build(output: Path, runs: Sequence[Bundle], sheet: Sheet, commit: str | None, dev: Texts, test: Texts) -> None:
    """Write the model that the last run has made, measure it as users will use it, and describe it."""
    trained = runs[-1]
    source, target = sheet.languages
    rules = Normalisation.of([source], [target])
    if trained.config.normalisation != rules.name:
        # Our corpora are typed as they are meant but for a handful of letters: the rules change only what users type.
        print(f"trained with {trained.config.normalisation}, used with {rules.name}")
    config = replace(
        trained.config,
        source_language=source,
        target_language=target,
        normalisation=rules.name,
        licence=sheet.licence,
        **sheet.decoding.described(),
    )
    model, vocabularies = trained.model(), trained.vocabularies()
    weights = {key: value.detach().half() for key, value in model.named_parameters()}
    bundle = Bundle.write(output, config, weights, vocabularies, {}, "")
    compile_model(bundle.model(), vocabularies, output / "ctranslate2")
    compact_vocabulary(output / "ctranslate2" / "shared_vocabulary.json")
    write_history(runs, output / "log.jsonl")
    recipe = trained.path / "run" / "recipe.yaml"
    shutil.copy(recipe if recipe.is_file() else trained.path / "recipe.yaml", output / "recipe.yaml")
    Recipe.load(output / "recipe.yaml")

    translator, letters = Translator(bundle), rules.target
    dev, test = ((sources, [normalise(line, letters) for line in lines]) for sources, lines in (dev, test))
    scores: dict[str, Any] = {
        "dev": {"of": sheet.dev, **measured(translator, *dev)},
        "test": {"of": sheet.test, **measured(translator, *test)},
        "joined": {str(count): measured_joined(translator, *test, count) for count in (2, 3)},
        "training": trained.scores().get("training") or how_trained(runs, commit),
    }
    write_scores(output, scores)
    bundle, _ = calibrate(bundle, *dev, test=test)
    scores = bundle.scores()
    print(json.dumps({part: scores[part] for part in scores if part != "training"}, ensure_ascii=False, indent=1))
    examples = [(text, translator.translate(text).text) for text in sheet.examples]
    parameters = sum(each.numel() for each in model.parameters())
    (output / "README.md").write_text(card(sheet, scores, parameters, examples), encoding="utf-8", newline="\n")
    (output / "LICENSE.txt").write_text(licence_notice(sheet), encoding="utf-8", newline="\n")


def texts_of(name: str, run: Path, files: Sequence[Path] | None) -> Texts:
    """What to measure on: files; or by name, "CORPUS:SPLIT" of a built-in corpus, or "run", what the run held out."""
    if files:
        corpus = Corpus(*files)
    elif name == "run":
        corpus = Corpus(run / "run" / "prepared" / "dev.source", run / "run" / "prepared" / "dev.target")
    else:
        corpus = builtin_corpus(*name.split(":"))
    sides = zip(*corpus.pairs(), strict=True)
    return next(map(list, sides)), next(map(list, sides))


def measured(translator: Translator, sources: list[str], references: list[str]) -> dict[str, Any]:
    """Scores with signatures and intervals, and BLEU by the length of the source."""
    translations = [each.text for each in translator.translate(sources)]
    lengths = [(each.label, each.sentences, each.bleu) for each in by_length(sources, translations, references)]
    return evaluate(translations, references).as_dict() | {"bleu_by_source_words": lengths}


def measured_joined(translator: Translator, sources: list[str], references: list[str], count: int) -> dict[str, Any]:
    """BLEU of lines that are so many sentences: as users get it, and as one sentence."""
    lines = joined(list(map(Pair, sources, references)), count)
    texts, expected = [pair.source for pair in lines], [pair.target for pair in lines]
    ways = {"bleu": as_usual, "bleu_as_one": as_one}
    beam = DecodingOptions().replace(**translator.bundle.config.decoding).beam
    scores = {name: quick_bleu(way(translator, beam)(texts), expected) for name, way in ways.items()}
    return {"texts": len(lines), **scores}


def how_trained(runs: Sequence[Bundle], commit: str | None) -> dict[str, Any]:
    """Minutes and steps of the last run; behind them those of the models that it went on from."""
    seen = events(runs[-1])
    last = {
        "minutes": round(max(each.get("seconds", 0) for each in seen) / 60, 1),
        "steps": max(each.get("step", 0) for each in seen),
        "commit": commit,
    }
    before = []
    for run in runs[:-1]:
        stage = dict(run.scores().get("training") or how_trained([run], commit))
        before += [*stage.pop("before", []), stage]
    return last | ({"before": before} if before else {})


def events(run: Bundle) -> list[dict[str, Any]]:
    """What a run has told of itself."""
    return [json.loads(line) for line in (run.path / "log.jsonl").read_text(encoding="utf-8").splitlines()]


def write_history(runs: Sequence[Bundle], output: Path) -> None:
    """Write a part of all runs' events, one run after the other."""
    kept = [each for run in runs for each in told(events(run), KEPT_STEPS // len(runs))]
    lines = [json.dumps(published(each), ensure_ascii=False) for each in kept]
    output.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8", newline="\n")


def told(history: list[dict[str, Any]], most: int) -> list[dict[str, Any]]:
    """Of a history about so many steps, and all that is rarer."""
    steps = [place for place, each in enumerate(history) if each["event"] == "Stepped"]
    kept = {*steps[:: max(1, len(steps) // most)], steps[-1]}
    return [each for place, each in enumerate(history) if place in kept or each["event"] not in ("Stepped", "Saved")]


def published(event: dict[str, Any]) -> dict[str, Any]:
    """An event with six digits of each number, for the rest is half of the file; a model by its name, not its place."""
    if event["event"] == "Transferred":
        event = event | {"model": Path(event["model"]).name}
    return {
        key: float(f"{value:.6g}") if isinstance(value, float) and key != "time" else value
        for key, value in event.items()
    }


def compact_vocabulary(path: Path) -> None:
    """Write CTranslate2's list of pieces without what only people need."""
    pieces = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps(pieces, ensure_ascii=False, separators=(",", ":")), encoding="utf-8", newline="\n")


def write_scores(folder: Path, scores: dict[str, Any]) -> None:
    """Write scores.json."""
    text = json.dumps(scores, ensure_ascii=False, indent=2) + "\n"
    (folder / "scores.json").write_text(text, encoding="utf-8", newline="\n")


if __name__ == "__main__":
    main()
