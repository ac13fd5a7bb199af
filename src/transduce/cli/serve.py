"""`transduce serve`: a web page and an API over models."""

from __future__ import annotations

import logging
import os
import signal
import sys
from pathlib import Path
from typing import Annotated

import typer

__all__ = ["serve"]


def serve(
    model: Annotated[
        list[str] | None,
        typer.Argument(help="Directories or names of models; NAME=DIRECTORY names one. Else all built-in ones."),
    ] = None,
    host: Annotated[str, typer.Option(help="Address to listen on; 0.0.0.0 is all of them.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="0 is any that is free.", min=0, max=65535)] = 5000,
    workers: Annotated[int | None, typer.Option(help="Batches decoded at once; else one a core.", min=1)] = None,
    languages: Annotated[
        str | None, typer.Option(help="Such as en-tw, for models that do not say their languages.")
    ] = None,
    back: Annotated[
        bool,
        typer.Option(
            "--back",
            help="Of two models that lead there and back, each has a say in what the other writes: better, and slower.",
        ),
    ] = False,
    api_key_file: Annotated[Path | None, typer.Option(help="A key a line; then nobody translates without one.")] = None,
    max_characters: Annotated[int, typer.Option(help="Of a request.")] = 5000,
    max_texts: Annotated[int, typer.Option(help="Of a request.")] = 100,
    max_waiting: Annotated[int, typer.Option(help="Sentences in the queue; beyond that the answer is 503.")] = 2000,
    max_seconds: Annotated[float, typer.Option(help="For a request.")] = 30,
    requests_per_minute: Annotated[int, typer.Option(help="Of a key, or of an address without; 0 is no limit.")] = 300,
    batch_tokens: Annotated[
        int, typer.Option(help="Tokens decoded together; 1 is one sentence at a time.", min=1)
    ] = 512,
    behind_proxy: Annotated[
        bool, typer.Option("--behind-proxy", help="Trust a proxy on this machine to tell the caller's address.")
    ] = False,
    drain: Annotated[
        int, typer.Option(help="Seconds to go on, not ready, when told to stop, so that a balancer notices.", min=0)
    ] = 0,
    grace: Annotated[int, typer.Option(help="Seconds to finish accepted requests when told to stop.", min=1)] = 30,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="No line a request.")] = False,
) -> None:
    """Serve models: a web page, LibreTranslate's API, and our own under /v1. Ctrl-C ends it."""
    from transduce.bundle import builtin_folder, builtin_models
    from transduce.processes import cores
    from transduce.serve.limits import Keys, Limits
    from transduce.serve.models import ServedModels
    from transduce.serve.server import bind, run
    from transduce.serve.service import Service
    from transduce.text.languages import Direction

    signal.signal(signal.SIGTERM, _leave)
    limits = Limits(
        characters=max_characters,
        texts=max_texts,
        waiting=max_waiting,
        seconds=max_seconds,
        requests_per_minute=requests_per_minute,
    )
    keys = Keys.read(api_key_file) if api_key_file else None
    direction = Direction.parse(languages) if languages else Direction()
    with bind(host, port) as listener:
        count = workers or cores()
        chosen = model or [str(builtin_folder() / name) for name in builtin_models()]
        models = ServedModels.load(chosen, direction, count, back)
        _log_to_screen(quiet)
        service = Service(models, limits, keys, count, batch_tokens)
        address, free = listener.getsockname()[:2]
        shown = f"[{address}]" if ":" in address else address

        def ready() -> None:
            for each in models:
                other = f", back by {other.path.name}" if (other := each.translator.back) else ""
                typer.echo(f"{each.name}: {each.source or '?'} -> {', '.join(each.targets) or '?'}{other}", err=True)
            typer.echo(f"Ready: http://{shown}:{free}   API: /docs   Ctrl-C ends it.", err=True)
            if keys is None and address not in ("127.0.0.1", "::1"):
                typer.echo("Whoever can reach this machine can translate: --api-key-file asks for keys.", err=True)

        run(service, listener, drain=drain, grace=grace, behind_proxy=behind_proxy, ready=ready)


def _leave(*_: object) -> None:
    """At SIGTERM while models are loaded, which a container's first process would not hear, and when all is done.

    At once: threads that are still at a batch after the grace period do not hold it up.
    """
    sys.stderr.flush()
    os._exit(0)


def _log_to_screen(quiet: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(logging.Formatter("%(asctime)s %(message)s", "%H:%M:%S"))
    logger = logging.getLogger("transduce.serve")
    logger.addHandler(handler)
    logger.setLevel(logging.WARNING if quiet else logging.INFO)
