"""`transduce attention`: where a model looks, as a page to explore, a picture for a paper, or numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.errors import ConfigError, nearest

if TYPE_CHECKING:
    from transduce.attention_lens import AttentionMaps, Level
    from transduce.translator import Translator

__all__ = ["attention"]

PAGE = ".html"


def attention(
    model: Annotated[str, typer.Argument(help="Directory or name of a model.")],
    text: Annotated[str, typer.Argument(help="One sentence.")],
    target: Annotated[
        str | None, typer.Option(help="A translation of your own to look at; else the one that is found.")
    ] = None,
    to: Annotated[
        str | None, typer.Option(help="Language to translate into, of a model that knows several; else its first.")
    ] = None,
    output: Annotated[
        Path, typer.Option("--output", "-o", help="A page (.html) or a picture (.png, .svg, .pdf).")
    ] = Path("attention.html"),
    kind: Annotated[
        Literal["cross", "encoder", "decoder"], typer.Option(help="Of a picture, and what a page opens with.")
    ] = "cross",
    layer: Annotated[list[int] | None, typer.Option(help="The same; from 1. Can be given several times.")] = None,
    head: Annotated[list[int] | None, typer.Option(help="The same; from 1. Can be given several times.")] = None,
    words: Annotated[
        bool, typer.Option("--words/--subwords", help="Whole words, or pieces as the model reads.")
    ] = True,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept while searching.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON, and write no file.")] = False,
) -> None:
    """Show where a model looks while it translates a sentence: every layer, every head."""
    from transduce.translator import Translator

    if not as_json:
        _check_output(output)
    translator = Translator.load(model)
    _check_target(translator, target, to)
    maps = translator.attention(text, target, to, **({} if beam is None else {"beam": beam}))
    layers, heads = layer or [], head or []
    level: Level = "words" if words else "subwords"
    chosen = maps.at(level, kind)
    chosen.numbered("layer", layers)
    chosen.numbered("head", heads)
    if as_json:
        typer.echo(json.dumps(maps.as_json(), ensure_ascii=False))
        return
    if output.suffix.lower() == PAGE:
        from transduce.attention_lens import lens_page
        from transduce.storage import storage_errors, write_whole

        view = {"kind": kind, "level": level, "layer": layers[0] if layers else None, "heads": heads}
        with storage_errors(output.parent):
            write_whole(output, lens_page(maps, **view).encode())
    else:
        from transduce.attention_lens.picture import draw_picture

        draw_picture(maps, output, kind, layers, heads, level)
    _summarise(maps)
    typer.echo(f"\nWrote {output}{': open it in a browser' if output.suffix.lower() == PAGE else ''}.")


def _check_output(output: Path) -> None:
    from transduce.attention_lens.picture import FORMATS, check_picture

    suffix = output.suffix.lower()
    if suffix not in (PAGE, *FORMATS):
        raise ConfigError(f"{str(output)!r} is neither a page nor a picture.", remedy=nearest(suffix, (PAGE, *FORMATS)))
    if suffix in FORMATS:
        check_picture(output)
    if not output.parent.is_dir():
        raise ConfigError("the directory does not exist.", where=str(output.parent), remedy="Make it first.")


def _check_target(translator: Translator, target: str | None, to: str | None) -> None:
    """A language where the translation belongs is a slip that would give a page of nonsense."""
    config = translator.bundle.config
    if target is not None and to is None and target in (*config.target_languages, config.target_language):
        raise ConfigError(
            f"--target is the text of a translation, and {target!r} is a language.", remedy=f"Use --to {target}."
        )


def _summarise(maps: AttentionMaps) -> None:
    """Each word of the translation, how probable it was, and which word of the source it looked at most."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cross = maps.words()["cross"]
    table = Table("word", "probability", "looks most at", "share", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.columns[1].justify = table.columns[3].justify = "right"
    shares = cross.mean() if len(cross.values) else None
    for place, word in enumerate(maps.target.words):
        probability = 1.0
        for step in maps.steps[word.first : word.last + 1]:
            probability *= step.probability
        found = ("", "")
        if shares is not None:
            best = int(shares[place].argmax())
            found = (cross.columns[best], f"{shares[place, best]:.0%}")
        table.add_row(Text(word.text), f"{probability:.0%}", Text(found[0]), found[1])
    typer.echo(f"{maps.text}\n")
    Console().print(table)
