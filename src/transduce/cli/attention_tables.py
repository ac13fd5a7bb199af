"""What `transduce attention` prints: what a model said, how sure it was, and where it looked most."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from transduce.attention_lens import AttentionMaps, Guess, PictureMaps

__all__ = ["summarise"]


def summarise(maps: AttentionMaps | PictureMaps) -> None:
    """Print what was looked at, and a table of what the model made of it."""
    from transduce.attention_lens import PictureMaps

    if isinstance(maps, PictureMaps):
        typer.echo(f"{maps.title}\n")
        _labels(maps.guesses)
        return
    typer.echo(f"{maps.text}\n")
    if maps.target.tokens:
        _written(maps)
    by_what = {
        what: [guess for guess in maps.guesses if guess.what == what] for what in ("mask", "tag", "label", "next")
    }
    if by_what["mask"]:
        _fillings(maps, by_what["mask"])
    elif by_what["tag"]:
        _tags(maps, by_what["tag"])
    elif by_what["label"]:
        _labels(by_what["label"])
    elif not maps.target.tokens:
        typer.echo("Nothing is masked: write [MASK] for a word, and the model fills it in.")
    for guess in by_what["next"]:
        likely = ", ".join(f"{_shown(one.token)} {_percent(one.probability)}" for one in guess.alternatives)
        typer.echo(f"\nNext: {likely}")


def _written(maps: AttentionMaps) -> None:
    """Each word, how probable it was, and which word it looked at most: of the source, or of what was written."""
    rows = []
    kind = next((kind for kind in maps.kinds if kind != "encoder"), None)
    looked = maps.at("words", kind) if kind else None
    shares = looked.mean() if looked else None
    for place, word in enumerate(maps.target.words):
        probability = 1.0
        for step in maps.steps[word.first : word.last + 1]:
            probability *= step.probability
        found = ("", "")
        if looked is not None and shares is not None:
            best = int(shares[place].argmax())
            found = (looked.columns[best], _percent(float(shares[place, best])))
        rows.append((word.text, _percent(probability), *found))
    _print(("word", "probability", "looks most at", "share"), rows)


def _fillings(maps: AttentionMaps, guesses: Sequence[Guess]) -> None:
    """What each mask would be filled with."""
    rows = [
        (str(number), _shown(one.token), _percent(one.probability))
        for number, guess in enumerate(guesses, 1)
        for one in guess.alternatives
    ]
    _print(("mask", "filled with", "probability"), rows)


def _tags(maps: AttentionMaps, guesses: Sequence[Guess]) -> None:
    """Each word and its tag."""
    words = {word.first: word.text for word in maps.source.words}
    best = [(words.get(guess.place or 0, ""), guess.alternatives[0]) for guess in guesses]
    _print(("word", "tag", "probability"), [(word, one.token, _percent(one.probability)) for word, one in best])


def _labels(guesses: Sequence[Guess]) -> None:
    """The most probable labels."""
    rows = [(one.token, _percent(one.probability)) for guess in guesses for one in guess.alternatives[:5]]
    _print(("label", "probability"), rows)


def _percent(share: float) -> str:
    """A share as on the page."""
    return "<1%" if 0 < share < 0.01 else f"{share:.0%}"


def _shown(token: str) -> str:
    """A piece as people read it."""
    from transduce.attention_lens.words import LINE_END

    return LINE_END if token == "\n" else token.replace("▁", " ").strip() or "space"


def _print(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(*columns, box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for column in table.columns:
        if column.header in ("probability", "share"):
            column.justify = "right"
    for row in rows:
        table.add_row(*map(Text, row))
    Console().print(table)
