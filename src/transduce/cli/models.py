"""`transduce models`: what there is to translate with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from transduce.errors import BundleError

if TYPE_CHECKING:
    from transduce.catalogue import ListedModel

__all__ = ["models"]

SCORES = {"bleu": "BLEU {:.1f}", "chrf": "chrF {:.1f}", "accuracy": "{:.1f} % right", "f1": "F1 {:.1f}"}
"""How scores are shown; perplexity only where there is nothing else."""


def models(
    directory: Annotated[Path | None, typer.Argument(help="List the models in it as well.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """List the built-in models: languages, scores on sentences they had not seen, size and licence.

    Commands take them by name (`-m en-de`), `translate` also by languages (`--from en --to de`).
    """
    from transduce.bundle import Bundle
    from transduce.catalogue import ListedModel, builtin_list, models_in

    found = builtin_list()
    for path in models_in(directory) if directory is not None else ():
        try:
            found.append(ListedModel(str(path), Bundle.open(path)))
        except BundleError as error:  # the others are worth listing all the same
            typer.echo(f"transduce: {error}", err=True)
    if as_json:
        typer.echo(json.dumps([model.as_dict() for model in found], ensure_ascii=False, indent=2))
        return
    from transduce.cli.tables import print_scores

    print_scores(["Name", "What it does", "Scores", "MB", "Licence"], map(_row, found), [])


def _row(model: ListedModel) -> list[str]:
    from transduce.text.language_names import language_name

    config = model.bundle.config
    does = config.task.replace("-", " ")
    if model.targets and model.source:
        does = f"{language_name(model.source)} → {', '.join(map(language_name, model.targets))}"
    shown = [form.format(model.scores[name]) for name, form in SCORES.items() if name in model.scores]
    if not shown and "perplexity" in model.scores:
        shown = [f"perplexity {model.scores['perplexity']:.2f}"]
    # What was not held out from choosing settings says so.
    part = f" ({model.measured_on})" if shown and model.measured_on != "test" else ""
    return [model.name, does, ", ".join(shown) + part, f"{model.megabytes:.1f}", config.licence or "not stated"]
