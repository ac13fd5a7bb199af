"""`transduce translate`: text in, text out, line by line."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import IO, TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from transduce.translator import Translation

__all__ = ["translate"]

LINES_AT_ONCE = 256
"""Lines that are read before their translations are written: enough to batch, few enough to see it go."""


def translate(
    text: Annotated[list[str] | None, typer.Argument(help="Texts; standard input if neither these nor a file.")] = None,
    model: Annotated[str, typer.Option("--model", "-m", help="Directory or name of a model.")] = "en-de",
    input_file: Annotated[Path | None, typer.Option("--input", "-i", help="Text file, one text a line.")] = None,
    output_file: Annotated[
        Path | None, typer.Option("--output", "-o", help="Where to write; else to the screen.")
    ] = None,
    beam: Annotated[int, typer.Option(help="Hypotheses kept while searching; 1 is fastest.")] = 4,
    n_best: Annotated[int, typer.Option(help="Translations per text.")] = 1,
    scores: Annotated[bool, typer.Option("--scores", help="Put a score before each translation.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object a line.")] = False,
) -> None:
    """Translate texts. Lines keep their order, and empty lines stay empty."""
    from transduce.translator import Translator

    translator = Translator.load(model)
    lines = iter(text) if text else _lines(input_file)
    with _output(output_file) as output:
        while block := list(islice(lines, LINES_AT_ONCE)):
            for line, translation in zip(block, translator.translate(block, beam=beam, n_best=n_best), strict=True):
                output.writelines(_shown(line, translation, scores, as_json))
            output.flush()


def _lines(path: Path | None) -> Iterator[str]:
    from transduce.data.corpus import read_lines

    if path is not None:
        return read_lines(path)
    return (line.rstrip("\r\n") for line in sys.stdin)


def _shown(line: str, translation: Translation, scores: bool, as_json: bool) -> Iterable[str]:
    if as_json:
        alternatives = [{"text": each.text, "score": each.score} for each in translation.alternatives]
        entry = {"source": line, "translation": translation.text, "score": translation.score}
        yield json.dumps(entry | {"alternatives": alternatives}, ensure_ascii=False) + "\n"
        return
    for each in translation.alternatives:
        yield f"{each.score:.4f}\t{each.text}\n" if scores else f"{each.text}\n"


@contextmanager
def _output(path: Path | None) -> Iterator[IO[str]]:
    """Standard output, or a file that appears only when it is complete."""
    if path is None:
        yield sys.stdout
        return
    aside = path.with_name(f".{path.name}.part")
    with aside.open("w", encoding="utf-8", newline="\n") as file:
        yield file
    aside.replace(path)
