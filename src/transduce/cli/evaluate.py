"""`transduce evaluate` and `transduce score`: how good a model is, and how likely it finds given translations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["evaluate", "score"]

PAIRS_AT_ONCE = 64


def evaluate(
    model: Annotated[Path, typer.Argument(help="Directory of a trained model.")],
    source: Annotated[Path, typer.Argument(help="Text to translate.")],
    reference: Annotated[Path, typer.Argument(help="What it should become, line by line.")],
    beam: Annotated[int, typer.Option(help="Hypotheses kept while searching.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Measure a model: BLEU, chrF and TER by sacreBLEU, with signatures and 95 % intervals."""
    from rich.console import Console

    from transduce.data.corpus import Corpus
    from transduce.evaluation import evaluate as measure
    from transduce.evaluation import evaluation_table, signatures

    with Console(stderr=True).status("Translating …"):
        from transduce.translator import Translator

        pairs = list(Corpus(source, reference).pairs(allow_identical=True))
        translator = Translator.load(model)
        translations = translator.translate([pair.source for pair in pairs], beam=beam)
    with Console(stderr=True).status("Measuring …"):
        result = measure([each.text for each in translations], [pair.target for pair in pairs])
    if as_json:
        typer.echo(json.dumps(result.as_dict(), ensure_ascii=False, indent=2))
        return
    from rich import box
    from rich.table import Table

    header, rows = evaluation_table(result)
    table = Table(*header, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for row in rows:
        table.add_row(*row)
    console = Console()
    console.print(table)
    for signature in signatures(result):
        console.print(signature, style="dim", highlight=False)


def score(
    model: Annotated[Path, typer.Argument(help="Directory of a trained model.")],
    source: Annotated[Path, typer.Argument(help="Text.")],
    target: Annotated[Path, typer.Argument(help="Its translations, line by line.")],
) -> None:
    """Print for each line the log-probability of its given translation, and that per token."""
    import torch

    from transduce.data.corpus import Corpus
    from transduce.decoding import score as forced
    from transduce.text.tokenizer import EOS
    from transduce.translator import Translator

    translator = Translator.load(model)
    encode = translator.tokenizer.encode
    for pair in Corpus(source, target).pairs(allow_identical=True):
        ids, wanted = [*encode(pair.source), EOS], [*encode(pair.target), EOS]
        (hypothesis,) = forced(translator.engine.model, torch.tensor([ids]), [wanted])
        typer.echo(f"{hypothesis.log_probability:.4f}\t{hypothesis.log_probability / len(wanted):.4f}")
