"""`transduce attention`: where a model looks, as a page to explore, a picture for a paper, or numbers."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from transduce.errors import ConfigError, InputError, nearest

if TYPE_CHECKING:
    from transduce.attention_lens import AttentionMaps, Level, PictureMaps
    from transduce.bundle import Bundle
    from transduce.translator import Translator

__all__ = ["attention"]

PAGE = ".html"


def attention(
    model: Annotated[str, typer.Argument(help="Directory or name of a model.")],
    text: Annotated[
        str,
        typer.Argument(help="One sentence; of a model that sees, a picture: mnist:17, or a file (.npy, .idx) of some."),
    ],
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
        Literal["cross", "encoder", "decoder"] | None,
        typer.Option(help="Of a picture, and what a page opens with; else the first that the model has."),
    ] = None,
    layer: Annotated[list[int] | None, typer.Option(help="The same; from 1. Can be given several times.")] = None,
    head: Annotated[list[int] | None, typer.Option(help="The same; from 1. Can be given several times.")] = None,
    words: Annotated[
        bool, typer.Option("--words/--subwords", help="Whole words, or pieces as the model reads.")
    ] = True,
    beam: Annotated[int | None, typer.Option(help="Hypotheses kept while searching.")] = None,
    index: Annotated[int | None, typer.Option(help="Which picture of a file, counted from 0.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print all numbers as JSON, and write no file.")] = False,
) -> None:
    """Show where a model looks while it reads, writes or sees: every layer, every head."""
    from transduce.attention_lens import PictureMaps
    from transduce.attention_lens.maps import kind_among
    from transduce.bundle import Bundle, find_model

    if not as_json:
        _check_output(output)
    bundle = Bundle.open(find_model(model))
    _check_options(bundle, target, to, beam, index)
    maps: AttentionMaps | PictureMaps
    if bundle.config.task == "image-classification":
        maps = _picture(bundle, text, index)
    elif bundle.config.task == "parsing":
        maps = _tree(model, text, beam)
    elif _writes_from_source(bundle):
        maps = _translation(model, text, target, to, beam)
    else:
        from transduce.attention_lens.looking import look_at_text

        maps = look_at_text(bundle, text)
    layers, heads = layer or [], head or []
    level: Level = "words" if words else "subwords"
    kind = kind_among(maps.kinds, kind)
    chosen = maps.patches() if isinstance(maps, PictureMaps) else maps.at(level, kind)
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
        from transduce.attention_lens.picture import draw_patches, draw_picture

        if isinstance(maps, PictureMaps):
            draw_patches(maps, output, layers, heads)
        else:
            draw_picture(maps, output, kind, layers, heads, level)
    from transduce.cli.attention_tables import summarise

    summarise(maps)
    typer.echo(f"\nWrote {output}{': open it in a browser' if output.suffix.lower() == PAGE else ''}.")


def _translation(model: str, text: str, target: str | None, to: str | None, beam: int | None) -> AttentionMaps:
    from transduce.translator import Translator

    translator = Translator.load(model)
    _check_target(translator, target, to)
    return translator.attention(text, target, to, **({} if beam is None else {"beam": beam}))


def _tree(model: str, text: str, beam: int | None) -> AttentionMaps:
    """A parser reads words and writes brackets: what is looked at is those."""
    from transduce.attention_lens.capture import capture, check_length
    from transduce.parser import Parser
    from transduce.text.penn import split_words
    from transduce.translator import Translator

    words = split_words(text)
    if not words:
        raise InputError("there is no text to look at.", remedy="Give a sentence.")
    translator = Translator.load(model, engine="torch")
    parser = Parser(translator.vocabularies, translator.engine)
    source = parser.vocabularies.source.encode(" ".join(words))
    check_length(translator.torch_engine.model, "text", len(source) + 1)
    options = parser.options([words], **({} if beam is None else {"beam": beam}))
    written = parser.engine.decode([source], options)[0][0].tokens
    name = translator.path.resolve().name
    return capture(translator.torch_engine.model, parser.vocabularies, source, written, name=name)


def _picture(bundle: Bundle, given: str, index: int | None) -> PictureMaps:
    from transduce.attention_lens.looking import look_at_picture
    from transduce.cli.classify import pictures_of

    pictures, place, name = pictures_of(given), index or 0, Path(given).name
    if not 0 <= place < len(pictures):
        raise InputError(
            f"there is no picture {place}.", where=name, remedy=f"Pictures are counted from 0 to {len(pictures) - 1}."
        )
    return look_at_picture(bundle, pictures[place], name if len(pictures) == 1 else f"{name}:{place}")


def _writes_from_source(bundle: Bundle) -> bool:
    """Whether a model reads one text and writes another."""
    return bundle.config.network in ("transformer", "recurrent")


def _check_output(output: Path) -> None:
    from transduce.attention_lens.picture import FORMATS, check_picture

    suffix = output.suffix.lower()
    if suffix not in (PAGE, *FORMATS):
        raise ConfigError(f"{str(output)!r} is neither a page nor a picture.", remedy=nearest(suffix, (PAGE, *FORMATS)))
    if suffix in FORMATS:
        check_picture(output)
    if not output.parent.is_dir():
        raise ConfigError("the directory does not exist.", where=str(output.parent), remedy="Make it first.")


def _check_options(bundle: Bundle, target: str | None, to: str | None, beam: int | None, index: int | None) -> None:
    """Refuse options that mean nothing to a model of this task."""
    task = bundle.config.task
    translates = task in ("translation", "text-to-text")
    for name, value, fits, needs in (
        ("--target", target, translates, "a model that translates"),
        ("--to", to, translates, "a model that translates"),
        ("--beam", beam, _writes_from_source(bundle), "a model that searches for what to write"),
        ("--index", index, task == "image-classification", "a model of pictures"),
    ):
        if value is not None and not fits:
            raise ConfigError(f"{name} is for {needs}; this one's task is {task}.", remedy="Leave it out.")


def _check_target(translator: Translator, target: str | None, to: str | None) -> None:
    """A language where the translation belongs is a slip that would give a page of nonsense."""
    config = translator.bundle.config
    if target is not None and to is None and target in (*config.target_languages, config.target_language):
        raise ConfigError(
            f"--target is the text of a translation, and {target!r} is a language.", remedy=f"Use --to {target}."
        )
