"""The command `transduce`: what it offers, and how it reports mistakes."""

from __future__ import annotations

import os
import sys
from typing import Annotated

import typer

import transduce
from transduce.cli.attention import attention
from transduce.cli.calibrate import calibrate
from transduce.cli.classify import classify, fill
from transduce.cli.corpora import corpora
from transduce.cli.evaluate import compare, evaluate, score
from transduce.cli.export import export
from transduce.cli.generate import generate
from transduce.cli.import_ import import_
from transduce.cli.models import models
from transduce.cli.paper import paper
from transduce.cli.parse import parse
from transduce.cli.plan import plan
from transduce.cli.serve import serve
from transduce.cli.train import train
from transduce.cli.translate import translate
from transduce.errors import TransduceError

__all__ = ["app", "main"]

app = typer.Typer(
    name="transduce",
    help="Turn parallel text into a translator of your own.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
USE = (translate, generate, classify, fill, parse, attention, serve)
MEASURE = (evaluate, compare, score, calibrate)
for command in (train, plan, *USE, *MEASURE, import_, export, models, corpora, paper):
    app.command(command.__name__.removesuffix("_"))(command)


def show_version(wanted: bool) -> None:
    """Print the version and stop."""
    if wanted:
        typer.echo(f"transduce {transduce.__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the traceback of an error; works anywhere.")] = False,
) -> None:
    """Turn parallel text into a translator of your own."""


def main() -> None:
    """Run the command line; a user's mistake is one message and exit code 2, a traceback only with --debug."""
    arguments, debug = _take_debug(sys.argv[1:])
    try:
        app(arguments, prog_name="transduce")
    except TransduceError as error:
        if debug:
            raise
        typer.echo(f"transduce: {error}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        # The reader of our output has left (`transduce … | head`); closing stdout again must not complain either.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(1)


def _take_debug(arguments: list[str]) -> tuple[list[str], bool]:
    """--debug is understood before and after the command, but not behind `--`, where text begins."""
    end = arguments.index("--") if "--" in arguments else len(arguments)
    head = [argument for argument in arguments[:end] if argument != "--debug"]
    return head + arguments[end:], len(head) < end
