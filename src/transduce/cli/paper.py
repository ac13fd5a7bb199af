"""`transduce paper`: the paper's figures beside ours."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.console import Console

    from transduce.paper import LayerCount, LayerKind, LearningRate, VariationCount

__all__ = ["paper"]


def paper(
    vocabulary: Annotated[int, typer.Option(min=4, help="Size of the shared vocabulary.")] = 37_000,
    length: Annotated[int, typer.Option(help="Sequence length n for Table 1.")] = 30,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Check this code against the published figures of "Attention Is All You Need".

    Prints the parameters of every row of Table 3 (each model is built without being allocated), the learning rates
    of equation 3, the layers of Figure 1 and the complexity of Table 1.
    """
    from rich.console import Console

    with Console(stderr=True).status("Building the models of Table 3 …"):
        from transduce.paper import layer_counts, learning_rates, table_1, table_3

        rows, rates = table_3(vocabulary), learning_rates()
        layers, kinds = layer_counts(vocabulary), table_1(length)
    if as_json:
        report = {"vocabulary": vocabulary, "table_3": rows, "learning_rates": rates, "layers": layers}
        report |= {"table_1": {"length": length, "kinds": kinds}}
        typer.echo(json.dumps(report, default=asdict, ensure_ascii=False, indent=2))
        return
    console = Console()
    _print_variations(console, rows, vocabulary)
    _print_rates(console, rates)
    _print_layers(console, layers)
    _print_kinds(console, kinds, length)


def _print_variations(console: Console, rows: list[VariationCount], vocabulary: int) -> None:
    cells = (
        (
            row.row,
            row.change,
            f"{row.parameters:,}",
            f"{row.difference / 1e6:+.1f}M",
            f"{row.paper_millions}M",
            f"{row.paper_difference:+d}M",
            f"{row.paper_perplexity:.2f}",
            f"{row.paper_bleu:.1f}",
        )
        for row in rows
    )
    columns = ("row", "change", "counted", "− base", "paper", "− base", "PPL", "BLEU")
    _print_table(console, f"Table 3: parameters, with a vocabulary of {vocabulary:,}", columns, cells, text_columns=2)
    console.print(
        "The paper rounds to millions and gives its vocabulary as about 37,000. It leaves A, D and E blank, as base; "
        "learned positions are two tables of 1,024 here. PPL and BLEU are the paper's.\n",
        style="dim",
    )


def _print_rates(console: Console, rates: list[LearningRate]) -> None:
    cells = ((rate.model, f"{rate.step:,}", f"{rate.rate:.4e}", f"{rate.by_hand:.4e}") for rate in rates)
    columns = ("model", "step", "noam(step)", "by hand")
    _print_table(console, "Equation 3: learning rate, with 4,000 warm-up steps", columns, cells)
    console.print()


def _print_layers(console: Console, layers: list[LayerCount]) -> None:
    cells = ((each.part, str(each.counted), str(each.paper), f"{each.parameters_each:,}") for each in layers)
    columns = ("part", "counted", "paper", "parameters each")
    _print_table(console, "Figure 1: the base model's parts", columns, cells)
    console.print()


def _print_kinds(console: Console, kinds: list[LayerKind], length: int) -> None:
    cells = (
        (
            kind.kind,
            f"O({kind.complexity})",
            _number(kind.operations),
            "–" if kind.counted is None else _number(kind.counted),
            kind.sequential,
            kind.path,
        )
        for kind in kinds
    )
    columns = ("layer", "complexity", "operations", "counted", "steps", "path")
    _print_table(console, f"Table 1: per layer, at n={length}, d=512, k=3, r=10", columns, cells)
    console.print("Counted: the multiplications of `attention`, which are two products of n²·d.", style="dim")


def _number(value: int) -> str:
    return f"{value:,}" if value < 1e8 else f"{value:.3e}"


def _print_table(
    console: Console, title: str, columns: tuple[str, ...], rows: Iterable[tuple[str, ...]], text_columns: int = 1
) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    for index, column in enumerate(columns):
        table.add_column(column, justify="left" if index < text_columns else "right", no_wrap=True)
    for row in rows:
        table.add_row(*row)
    console.print(title, style="bold")
    console.print(table)
