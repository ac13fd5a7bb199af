"""`transduce generate`: continue a text."""

from __future__ import annotations

import json
import sys
from typing import Annotated, Any

import typer

__all__ = ["generate"]


def generate(
    model: Annotated[str, typer.Argument(help="Directory of a language model.")],
    prompt: Annotated[str, typer.Argument(help="The beginning of the text; - reads it from standard input.")] = "",
    tokens: Annotated[int, typer.Option(help="Write at most so many.")] = 200,
    samples: Annotated[int, typer.Option(help="Write so many continuations.")] = 1,
    temperature: Annotated[float, typer.Option(help="Below 1 safer, above 1 bolder.")] = 1.0,
    top_k: Annotated[int, typer.Option(help="Draw from the k most probable tokens only; 0 is all.")] = 0,
    top_p: Annotated[float, typer.Option(help="Draw from the fewest tokens that hold this share.")] = 1.0,
    beam: Annotated[int | None, typer.Option(help="Search with so many beams instead of drawing; 1 is greedy.")] = None,
    seed: Annotated[int, typer.Option(help="Of what is drawn.")] = 0,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts, when all is written.")] = False,
) -> None:
    """Continue a text with a language model; it is printed as it is written."""
    from transduce.errors import ConfigError
    from transduce.generator import Generator

    generator = Generator.load(model)
    if prompt == "-":
        prompt = sys.stdin.read()
    drawing = {"temperature": temperature, "top_k": top_k, "top_p": top_p, "seed": seed}
    options: dict[str, Any] = {"sampling": True, "beam": 1, "n_best": samples} | drawing
    if beam is not None:
        if drawing != {"temperature": 1.0, "top_k": 0, "top_p": 1.0, "seed": 0}:
            raise ConfigError("--beam searches and draws nothing.", remedy="Leave it or the options of drawing out.")
        options = {"beam": max(beam, samples), "n_best": samples}

    def say(text: str) -> None:
        typer.echo(text, nl=False)
        sys.stdout.flush()

    if as_json:
        found = generator.generate_several(prompt, tokens, **options)
        keys = ("text", "log_probability", "tokens")
        texts = [{key: getattr(each, key) for key in keys} for each in found]
        typer.echo(json.dumps({"prompt": prompt, "continuations": texts}, ensure_ascii=False))
    elif samples == 1:
        say(prompt)
        generator.generate(prompt, tokens, say, **options)
        typer.echo()
    else:
        for number, each in enumerate(generator.generate_several(prompt, tokens, **options), start=1):
            typer.echo(f"--- {number}\n{prompt}{each.text}")
