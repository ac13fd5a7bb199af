"""`transduce plan`: what a training run will take, before it is begun."""

from __future__ import annotations

import json
import os
import re
from dataclasses import asdict, replace
from typing import TYPE_CHECKING, Annotated, Any

import typer

from transduce.errors import ConfigError, nearest

if TYPE_CHECKING:
    from rich.console import Console

    from transduce.training.machines import Device
    from transduce.training.plan import Plan, Planner
    from transduce.training.recipe import Recipe
    from transduce.training.speed import Speed

__all__ = ["plan"]

BUSY = 0.8
"""Share of the time below which other programs must have had the processor."""
UNITS = {"": 1.0, "K": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "KI": 2**10, "MI": 2**20, "GI": 2**30, "TI": 2**40}
MEMORY = {
    "weights": "weights",
    "gradients": "gradients",
    "optimizer": "optimiser state",
    "average": "averaged weights",
    "activations": "activations",
    "logits": "logits and their gradient",
    "validation": "validation, beyond these",
    "process": "the process itself",
}


def plan(
    recipe: Annotated[
        list[str],
        typer.Argument(
            metavar="RECIPE [key=value …]",
            help="Name of a recipe, or a YAML file; then settings to change, such as training.batch_tokens=4096.",
        ),
    ],
    steps: Annotated[int | None, typer.Option(min=1, help="Updates; else as many as the recipe's budget has.")] = None,
    pairs: Annotated[int | None, typer.Option(min=1, help="Pairs (or texts) of the corpus, to count epochs.")] = None,
    tokens_per_pair: Annotated[
        str, typer.Option(metavar="S[,T]", help="Mean tokens of a text, and of its translation if that differs.")
    ] = "25",
    devices: Annotated[int, typer.Option(min=1, help="Devices that share each batch.")] = 1,
    device: Annotated[
        str | None,
        typer.Option(help="A device that is not at hand: p100, v100, a100, h100 or cpu. Nothing is measured."),
    ] = None,
    memory: Annotated[str | None, typer.Option(help="Of a device, such as 24GB; else the device's own.")] = None,
    measure: Annotated[bool, typer.Option("--measure/--no-measure", help="Train for some seconds to see.")] = True,
    seconds: Annotated[float, typer.Option(min=1, max=3600, help="How long to measure.")] = 20.0,
    tokens_per_second: Annotated[
        float | None, typer.Option(min=0.001, help="Target tokens that one device trains on; nothing is measured.")
    ] = None,
    utilisation: Annotated[
        float | None,
        typer.Option(min=0.001, max=1, help="Share of its best speed that a device reaches; an assumption."),
    ] = None,
    watts: Annotated[
        float | None, typer.Option(min=0.1, help="Of a device while it trains; else the device's most.")
    ] = None,
    bandwidth: Annotated[str, typer.Option(help="Between devices, in bytes a second.")] = "10GB",
    sharded: Annotated[
        bool, typer.Option("--shard", help="Share out weights and optimiser state among the devices (FSDP).")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for scripts.")] = False,
) -> None:
    """Say what training a recipe takes before you begin: parameters, operations, memory, hours, energy.

    The speed is measured: the recipe's network is really trained for 20 seconds, on random text and without writing a
    file. Of devices that are not at hand it is assumed (--device), or given (--tokens-per-second).
    """
    from rich.console import Console

    lengths = _lengths(tokens_per_pair)
    limit, speed_of_links = _size(memory, "--memory"), _size(bandwidth, "--bandwidth")
    with Console(stderr=True).status("Starting …"):
        from transduce.training.machines import DEVICES, Machine
        from transduce.training.plan import Planner
        from transduce.training.recipes import find_recipe

    name, *settings = recipe
    chosen = find_recipe(name).with_overrides(settings)
    if device is not None and device not in DEVICES:
        raise ConfigError(f"--device {device} is not known.", remedy=nearest(device, DEVICES))
    measured_here = measure and device is None and tokens_per_second is None
    kind, workers = _device(DEVICES, device, chosen)
    if utilisation is not None:
        kind = replace(kind, utilisation=utilisation)
    assert speed_of_links is not None
    machine = Machine(kind, devices, limit or kind.memory, speed_of_links, workers, sharded)
    planner = Planner(chosen, machine, lengths)
    if steps is None:
        planner.check_budget(pairs)
    speed = _measured(planner, seconds) if measured_here else None
    step_seconds = None if speed is None else speed.seconds_for
    if tokens_per_second is not None:
        given = tokens_per_second
        step_seconds = lambda tokens: tokens / given  # noqa: E731
    planned = planner.plan(step_seconds, steps, pairs, watts)
    assumed = list(_assumptions(planner, planned, watts, speed is None and step_seconds is None))
    if as_json:
        report: dict[str, Any] = {"recipe": name, "settings": settings, "network": chosen.family, "devices": devices}
        report |= {"device": kind.name, "sharded": sharded} | asdict(planned)
        report["memory"]["total"] = planned.memory.total
        report |= {"tokens_per_second": planned.tokens_per_second, "fits": planned.fits, "assumptions": assumed}
        report["measured"] = None if speed is None else asdict(speed)
        typer.echo(json.dumps(report, ensure_ascii=False, indent=2))
        return
    _show(Console(highlight=False), name, planner, planned, speed, assumed)


def _device(table: dict[str, Device], name: str | None, recipe: Recipe) -> tuple[Device, int]:
    """The device that is meant, with its memory as far as it is known, and the threads that would share a batch."""
    import torch

    from transduce.model.workers import Workers

    if name is not None and name != "cpu":
        return table[name], 1
    if name is None and torch.cuda.is_available():  # untested
        properties = torch.cuda.get_device_properties(0)
        half = torch.cuda.is_bf16_supported()
        return replace(table["p100"], name=properties.name, memory=float(properties.total_memory), half=half), 1
    workers = Workers.suited_to(torch.device("cpu"), recipe.training.batch_tokens).count
    return replace(table["cpu"], memory=None if name else _machine_memory()), workers


def _machine_memory() -> float | None:
    """Bytes of this machine; None where the system does not say."""
    try:
        return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    except (AttributeError, OSError, ValueError):  # Windows has none of it
        return None


def _measured(planner: Planner, seconds: float) -> Speed:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    from transduce.training.speed import measure_speed

    console = Console(stderr=True)
    columns = (TextColumn("Training on random text"), BarColumn(bar_width=24), TimeRemainingColumn())
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        bar = progress.add_task("", total=1.0)
        return measure_speed(
            planner.recipe,
            planner.config,
            planner.lengths,
            seconds,
            lambda share: progress.update(bar, completed=share),
        )


def _assumptions(planner: Planner, planned: Plan, watts: float | None, by_table: bool) -> list[str]:
    machine, (source, target) = planner.machine, planner.lengths
    kind = machine.device
    said = []
    if planner.recipe.task not in ("language-model", "image-classification"):
        said.append(f"texts of {source:g} tokens" + (f", translations of {target:g}" if target != source else ""))
    if by_table:
        said.append(f"{kind.name}: {_flops(kind.flops)}/s at best, of which training reaches {kind.utilisation:.0%}")
    if machine.count > 1:
        said.append(f"gradients sent at {_bytes(machine.bandwidth)}/s, while nothing is computed")
    said.append(f"{watts or kind.watts:g} W a device" + ("" if watts else " (--watts)"))
    said.append("validations and checkpoints not counted in the time")
    if not machine.is_cpu:
        said.append("memory untested on a GPU")
    return said


def _show(
    console: Console, name: str, planner: Planner, planned: Plan, speed: Speed | None, assumed: list[str]
) -> None:
    from rich import box
    from rich.table import Table

    machine, recipe = planner.machine, planner.recipe
    batch = f"{recipe.training.batch_tokens:,} tokens"
    batch += f" × {recipe.training.accumulate}" if recipe.training.accumulate > 1 else ""
    where = f"{machine.count} × {machine.device.name}" if machine.count > 1 else machine.device.name
    sending = f", of which {planned.communication_seconds:.3g} s for gradients" if machine.count > 1 else ""
    rows = [
        ("parameters", f"{planned.parameters:,}"),
        (
            "a step",
            f"batches of {batch}: {planned.tokens_per_step:,.0f} target tokens, {_flops(planned.flops_per_step)}",
        ),
        (
            "speed",
            f"{planned.tokens_per_second:,.0f} target tokens/s, {planned.seconds_per_step:.3g} s a step{sending}",
        ),
        ("all steps", f"{planned.steps:,}: {planned.flops:.2g} FLOP" + _epochs(planned)),
        ("time", _duration(planned.hours)),
        ("energy", f"{planned.kilowatt_hours:,.3g} kWh"),
    ]
    if planned.occupied_flops is not None:
        rows.insert(5, ("as the paper counts", f"{planned.occupied_flops:.2g} FLOP: time × devices × best speed"))
    console.print(f"{name} on {where}", style="bold")
    table = Table(box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False, show_header=False)
    for row in rows:
        table.add_row(*row)
    console.print(table)
    table = Table("memory of a device", "", box=box.SIMPLE_HEAD, show_edge=False, pad_edge=False)
    table.columns[1].justify = "right"
    for part, words in MEMORY.items():
        table.add_row(words, _bytes(getattr(planned.memory, part)))
    table.add_row("in all", _bytes(planned.memory.total), style="bold")
    console.print(table)
    if planned.fits is None:
        console.print("Whether that fits is not known: give --memory.")
    elif planned.fits:
        console.print(f"It fits: {_bytes(planned.memory.total)} of {_bytes(machine.memory or 0)}.")
    else:
        console.print(f"It does not fit: {_bytes(planned.memory.total)}, but there are {_bytes(machine.memory or 0)}.")
        for remedy in planned.remedies:
            console.print(f"  {remedy.change}  → {_bytes(remedy.total)} ({remedy.effect})", soft_wrap=True)
        if not planned.remedies:
            console.print("  No single change helps: a much smaller model, or devices with more memory.")
    if speed is not None:
        smaller = "" if speed.batch_tokens == recipe.training.batch_tokens else f" of {speed.batch_tokens:,} tokens"
        console.print(
            f"Measured: {speed.steps} steps{smaller} on {speed.device}, shared by {speed.workers} "
            f"{'thread' if speed.workers == 1 else 'threads'}, which computed {speed.busy:.0%} of the time.",
            style="dim",
        )
        if speed.busy < BUSY and speed.device == "cpu":
            alone = _duration(planned.hours * speed.busy)
            console.print(f"Other programs were at work: alone these steps would take down to {alone}.", style="dim")
    console.print("Assumed: " + "; ".join(assumed) + ".", style="dim", soft_wrap=True)


def _epochs(planned: Plan) -> str:
    return "" if planned.epochs is None else f", the corpus {planned.epochs:.3g} times"


def _lengths(text: str) -> tuple[float, float]:
    try:
        source, target = (float(part) for part in (text.split(",") * 2)[:2])
    except ValueError:
        source = target = 0.0
    if not (1 <= source <= 10_000 and 1 <= target <= 10_000 and text.count(",") < 2):
        raise ConfigError(
            f"--tokens-per-pair {text} is no mean length.",
            remedy="Write 25, or 25,28 for texts of 25 tokens and translations of 28.",
        )
    return source, target


def _size(text: str | None, option: str) -> float | None:
    """24GB, 24 GiB, 500M as bytes."""
    if text is None:
        return None
    found = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([KMGT]?I?)B?(?:/S)?", text.strip().upper())
    value = float(found.group(1)) * UNITS[found.group(2)] if found and found.group(2) in UNITS else 0.0
    if not value:
        raise ConfigError(f"{option} {text} is no amount of memory.", remedy="Write it as 24GB, 24GiB or 500MB.")
    return value


def _bytes(value: float) -> str:
    return f"{value / 1e6:,.0f} MB" if value < 1e9 else f"{value / 1e9:,.1f} GB"


def _flops(value: float) -> str:
    for name, size in (("PFLOP", 1e15), ("TFLOP", 1e12), ("GFLOP", 1e9)):
        if value >= size:
            return f"{value / size:.3g} {name}"
    return f"{value / 1e6:.3g} MFLOP"


def _duration(hours: float) -> str:
    if hours < 1:
        return f"{hours * 60:.3g} minutes"
    return f"{hours:.1f} hours" + (f" ({hours / 24:.1f} days)" if hours >= 48 else "")
