"""`transduce evaluate`, `compare` and `score`: how good a model is, which of two is better, what it finds likely."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.cli.engine_argument import BackOption, BesideOption, EngineOption

if TYPE_CHECKING:
    from transduce.decoding import Hypothesis
    from transduce.engines.engine import EngineName
    from transduce.evaluation import Comparison, Evaluation, Table
    from transduce.translator import Translation

__all__ = ["compare", "evaluate", "score"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Beam = Annotated[int | None, typer.Option(help="Hypotheses kept while searching; else the model's own.")]
Mbr = Annotated[
    bool | None,
    typer.Option(
        "--mbr/--no-mbr", help="Of the hypotheses, take the one that the others agree with most; else the model's own."
    ),
]
To = Annotated[str | None, typer.Option(help="Target language, of a model that knows several; else its first.")]

Source = Annotated[Path, typer.Argument(help="Text to translate; or a .tsv, or the name of a built-in corpus.")]
Reference = Annotated[Path | None, typer.Argument(help="What it should become, line by line.")]

PAIRS_AT_ONCE = 512
"""Pairs that are read before their scores are written: enough to batch sentences of like length."""


def evaluate(
    model: Annotated[str, typer.Argument(help="Directory or name of a model.")],
    source: Source,
    reference: Reference = None,
    to: To = None,
    beam: Beam = None,
    mbr: Mbr = None,
    beside: BesideOption = None,
    back: BackOption = None,
    engine: EngineOption = "auto",
    as_json: AsJson = False,
) -> None:
    """Measure a model: BLEU, chrF and TER by sacreBLEU, with signatures and 95 % intervals.

    BLEU by the length of the source as well, and how far confidence is off.

    Of models for other tasks accuracy, of those that guess words perplexity, of parsers F1.
    """
    from rich.console import Console

    from transduce.bundle import Bundle, find_model
    from transduce.cli.measure import measure_examples
    from transduce.cli.parse import measure_trees

    bundle = Bundle.open(find_model(model))
    if beside or back:
        bundle.require("translation", "text-to-text")
    if bundle.config.task == "parsing":
        measure_trees(bundle, source, 4 if beam is None else beam, as_json)
        return
    if bundle.config.task not in ("translation", "text-to-text", "parsing"):
        measure_examples(bundle, source, reference, as_json)
        return

    from transduce.evaluation import by_length, calibration_of, evaluation_table, length_table, sentence_chrf
    from transduce.evaluation import evaluate as measure

    found, sources, references = _translated(
        [model], source, reference, to, {"beam": beam, "mbr": mbr}, engine, beside or [], back
    )
    translations = [each.text for each in found[model]]
    with Console(stderr=True).status("Measuring …"):
        result = measure(translations, references)
        lengths = by_length(sources, translations, references)
        confidences = [each.confidence for each in found[model]]
        known = any(each is not None for each in confidences)
        calibration = calibration_of(confidences, sentence_chrf(translations, references)) if known else None
    if as_json:
        more = {"calibration": calibration.as_dict()} if calibration else {}
        typer.echo(_json(result.as_dict() | {"by_length": [asdict(bucket) for bucket in lengths]} | more))
        return
    _show(result, evaluation_table(result), length_table(lengths))
    if calibration:
        from transduce.cli.calibrate import shown_calibration

        typer.echo(shown_calibration(calibration))


def compare(
    baseline: Annotated[str, typer.Argument(help="Directory or name of a model.")],
    model: Annotated[str, typer.Argument(help="Directory or name of another.")],
    source: Source,
    reference: Reference = None,
    to: To = None,
    beam: Beam = None,
    mbr: Mbr = None,
    as_json: AsJson = False,
) -> None:
    """Say whether one model is better than another: paired bootstrap resampling on the same sentences."""
    from rich.console import Console

    from transduce.evaluation import compare as measure
    from transduce.evaluation import comparison_table

    translations, _, references = _translated([baseline, model], source, reference, to, {"beam": beam, "mbr": mbr})
    with Console(stderr=True).status("Measuring …"):
        texts = {name: [each.text for each in mine] for name, mine in translations.items()}
        result = measure(texts, references)
    if as_json:
        typer.echo(_json(result.as_dict()))
    else:
        _show(result, comparison_table(result))


def score(
    model: Annotated[str, typer.Argument(help="Directory or name of a model.")],
    source: Annotated[Path, typer.Argument(help="Text; or a .tsv, or the name of a built-in corpus.")],
    target: Annotated[Path | None, typer.Argument(help="Its translations, line by line.")] = None,
    to: To = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Print for each line the log-probability of its given translation, and that per token."""
    from transduce.cli.corpus_arguments import measured_corpus
    from transduce.cli.line_progress import LineProgress
    from transduce.translator import Translator

    translator = Translator.load(model)
    corpus = measured_corpus(source, target)
    pairs = corpus.pairs(allow_identical=True)
    with LineProgress(lambda: sum(1 for _ in corpus.pairs(allow_identical=True))) as progress:
        while block := list(islice(pairs, PAIRS_AT_ONCE)):
            sources, targets = zip(*block, strict=True)
            scores = [_scored(each) for each in translator.score(sources, targets, to)]
            with progress.aside():
                for pair, shown in zip(block, scores, strict=True):
                    if as_json:
                        typer.echo(json.dumps(pair._asdict() | shown, ensure_ascii=False))
                    else:
                        typer.echo(f"{shown['log_probability']:.4f}\t{shown['per_token']:.4f}")
            progress.advance(len(block))


def _scored(hypothesis: Hypothesis) -> dict[str, float]:
    total, tokens = hypothesis.log_probability, len(hypothesis.tokens)
    return {"log_probability": total, "per_token": total / tokens, "tokens": tokens}


def _json(values: dict[str, Any]) -> str:
    return json.dumps(values, ensure_ascii=False, indent=2)


def _show(result: Evaluation | Comparison, *tables: Table) -> None:
    from transduce.cli.tables import print_scores
    from transduce.evaluation import signatures

    for table in tables[:-1]:
        print_scores(*table, [])
        typer.echo()
    print_scores(*tables[-1], signatures(result))


def _translated(
    models: list[str],
    source: Path,
    reference: Path | None,
    to: str | None,
    options: dict[str, Any],
    engine: EngineName = "auto",
    beside: Sequence[str] = (),
    back: str | None = None,
) -> tuple[dict[str, list[Translation]], list[str], list[str]]:
    """What each model makes of the sources; the sources and the references."""
    from rich.console import Console

    from transduce.cli.corpus_arguments import measured_corpus
    from transduce.cli.line_progress import LineProgress

    pairs = list(measured_corpus(source, reference).pairs(allow_identical=True))
    translations: dict[str, list[Translation]] = {path: [] for path in models}
    letters: set[str] = set()
    for path in models:
        with Console(stderr=True).status(f"Loading {path} …"):
            from transduce.translator import Translator

            translator = Translator.load(path, engine, beside=beside, back=back)
        letters.add(translator.vocabularies.target.letters)
        with LineProgress(lambda: len(pairs)) as progress:
            for start in range(0, len(pairs), PAIRS_AT_ONCE):
                block = [pair.source for pair in pairs[start : start + PAIRS_AT_ONCE]]
                translations[path] += translator.translate(block, to, **options)
                progress.advance(len(block))
    references = _references([pair.target for pair in pairs], letters.pop() if len(letters) == 1 else "")
    return translations, [pair.source for pair in pairs], references


def _references(lines: list[str], letters: str) -> list[str]:
    """References as they are; where models write letters that are hard to type, with those that are meant."""
    from transduce.text import normalise

    if not letters:
        return lines
    meant = [normalise(line, letters) for line in lines]
    if changed := sum(normalise(line) != other for line, other in zip(lines, meant, strict=True)):
        shown = " or ".join(letters)
        typer.echo(f"In {changed:,} references, signs that look like {shown} are taken for it.", err=True)
    return meant
