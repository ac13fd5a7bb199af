"""`transduce evaluate`, `compare` and `score`: how good a model is, which of two is better, what it finds likely."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from transduce.evaluation import Comparison, Evaluation, Table

__all__ = ["compare", "evaluate", "score"]

AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")]
Beam = Annotated[int, typer.Option(help="Hypotheses kept while searching.")]


def evaluate(
    model: Annotated[Path, typer.Argument(help="Directory of a trained model.")],
    source: Annotated[Path, typer.Argument(help="Text to translate.")],
    reference: Annotated[Path, typer.Argument(help="What it should become, line by line.")],
    beam: Beam = 4,
    as_json: AsJson = False,
) -> None:
    """Measure a model: BLEU, chrF and TER by sacreBLEU, with signatures and 95 % intervals."""
    from rich.console import Console

    from transduce.evaluation import evaluate as measure
    from transduce.evaluation import evaluation_table

    translations, references = _translated([model], source, reference, beam)
    with Console(stderr=True).status("Measuring …"):
        result = measure(translations[str(model)], references)
    _show(result, evaluation_table(result), as_json)


def compare(
    baseline: Annotated[Path, typer.Argument(help="Directory of a trained model.")],
    model: Annotated[Path, typer.Argument(help="Directory of another.")],
    source: Annotated[Path, typer.Argument(help="Text to translate.")],
    reference: Annotated[Path, typer.Argument(help="What it should become, line by line.")],
    beam: Beam = 4,
    as_json: AsJson = False,
) -> None:
    """Say whether one model is better than another: paired bootstrap resampling on the same sentences."""
    from rich.console import Console

    from transduce.evaluation import compare as measure
    from transduce.evaluation import comparison_table

    translations, references = _translated([baseline, model], source, reference, beam)
    with Console(stderr=True).status("Measuring …"):
        result = measure(translations, references)
    _show(result, comparison_table(result), as_json)


def score(
    model: Annotated[Path, typer.Argument(help="Directory of a trained model.")],
    source: Annotated[Path, typer.Argument(help="Text.")],
    target: Annotated[Path, typer.Argument(help="Its translations, line by line.")],
) -> None:
    """Print for each line the log-probability of its given translation, and that per token."""
    from transduce.data.corpus import Corpus
    from transduce.translator import Translator

    translator = Translator.load(model)
    for pair in Corpus(source, target).pairs(allow_identical=True):
        hypothesis = translator.score(pair.source, pair.target)
        typer.echo(f"{hypothesis.log_probability:.4f}\t{hypothesis.log_probability / len(hypothesis.tokens):.4f}")


def _show(result: Evaluation | Comparison, table: Table, as_json: bool) -> None:
    if as_json:
        typer.echo(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
        return
    from transduce.cli.tables import print_scores
    from transduce.evaluation import signatures

    print_scores(*table, signatures(result))


def _translated(models: list[Path], source: Path, reference: Path, beam: int) -> tuple[dict[str, list[str]], list[str]]:
    """What each model makes of the source, and the references."""
    from rich.console import Console

    from transduce.data.corpus import Corpus

    pairs = list(Corpus(source, reference).pairs(allow_identical=True))
    translations = {}
    for path in models:
        with Console(stderr=True).status(f"Translating with {path} …"):
            from transduce.translator import Translator

            translated = Translator.load(path).translate([pair.source for pair in pairs], beam=beam)
            translations[str(path)] = [each.text for each in translated]
    return translations, [pair.target for pair in pairs]
