"""`transduce parse`: the constituents of sentences."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from transduce.bundle import Bundle

__all__ = ["measure_trees", "parse"]

AT_ONCE = 64


def parse(
    model: Annotated[str, typer.Argument(help="Directory of a model that was trained on trees.")],
    what: Annotated[str, typer.Argument(metavar="TEXT|FILE", help="A sentence, or a file with one on each line.")],
    beam: Annotated[int, typer.Option(help="Hypotheses kept while searching.")] = 4,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line, for scripts.")] = False,
) -> None:
    """Write the tree of a sentence, or of each sentence of a file; its brackets are always balanced."""
    from transduce.cli.classify import texts_of
    from transduce.parser import Parser

    parser = Parser.load(model)
    sentences = texts_of(what)
    while block := list(islice(sentences, AT_ONCE)):
        for sentence, tree in zip(block, parser.parse(block, beam=beam), strict=True):
            typer.echo(json.dumps({"text": sentence, "tree": str(tree)}, ensure_ascii=False) if as_json else str(tree))


def measure_trees(bundle: Bundle, source: Path, beam: int, as_json: bool) -> None:
    """Print F1 of a parser on a file of trees, or on the test set of built-in ones."""
    from transduce.cli.line_progress import LineProgress
    from transduce.data.builtin import BUILTIN, builtin_files
    from transduce.data.treebank import Treebank
    from transduce.evaluation.parsing import score_trees
    from transduce.parser import Parser

    builtin = str(source) in BUILTIN and not source.exists()
    trees = list(Treebank(builtin_files(str(source), "test")[0] if builtin else source).trees())
    parser = Parser.load(bundle.path)
    found = []
    with LineProgress(lambda: len(trees)) as progress:
        for start in range(0, len(trees), AT_ONCE):
            block = trees[start : start + AT_ONCE]
            found += parser.parse_words([tree.words() for tree in block], beam=beam)
            progress.advance(len(block))
    scores = score_trees(found, trees)
    if as_json:
        typer.echo(json.dumps(scores.as_dict() | {"signature": scores.signature}))
    else:
        typer.echo(
            f"F1 {scores.f1:.1f} (precision {scores.precision:.1f}, recall {scores.recall:.1f}), exact "
            f"{scores.exact:.1f} %, of {scores.trees:,} trees\n{scores.signature}"
        )
