"""The command line in lives of its own, each of which ends as told: whole, killed at a moment, or on a full disk.

Reads a life a line, as JSON. Each is a fork, so that PyTorch is loaded once, and runs `transduce` with the life's
arguments. Prints how it has ended (its exit code, or minus the signal) and what it has said, as JSON.

A moment is the n-th time that Python itself reports an event (sys.addaudithook) with an argument that ends with a text,
such as the opening of a file; so nothing of the program is replaced. Or a life is sent a signal from
outside, a while after its log has grown by some lines.
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import time
from contextlib import suppress
from pathlib import Path
from threading import Thread
from typing import Any, NoReturn

# What a training run loads at some time, loaded once before the forks.
import ctranslate2.specs  # noqa: F401
import torch._dynamo
import torch.utils.tensorboard  # noqa: F401
from tests.commands import end_as_command

import transduce.training.run  # noqa: F401


def strike(event: str, text: str, do: str, nth: int = 1, limit: int = 0) -> None:
    """At a moment "kill" the process, or let writes beyond a limit kill it ("in a write") or fail ("full")."""
    left = nth

    def hook(reported: str, arguments: tuple[Any, ...]) -> None:
        nonlocal left
        if reported != event or not any(str(argument).endswith(text) for argument in arguments):
            return
        left -= 1
        if left:
            return
        if do == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        if do == "in a write":
            signal.signal(signal.SIGXFSZ, signal.SIG_DFL)  # Python ignores it, so that the write fails instead
        limit_files(limit)

    sys.addaudithook(hook)


def limit_files(size: int) -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))


def live(arguments: list[str], output: int, moment: dict[str, Any] | None, limit: int | None) -> NoReturn:
    """One life."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    if limit is not None:
        limit_files(limit)
    if moment is not None:
        strike(**moment)
    end_as_command(arguments)


def tell(child: int, number: int, log: str, lines: int, pause: float) -> None:
    """Send a signal a while after a log has grown by so many lines, unless its writer ends before."""
    file = Path(log)
    start = file.stat().st_size if file.exists() else 0
    with suppress(ProcessLookupError):
        while not file.exists() or file.read_bytes()[start:].count(b"\n") < lines:
            os.kill(child, 0)
            time.sleep(0.01)
        time.sleep(pause)
        os.kill(child, number)


def life(
    arguments: list[str],
    moment: dict[str, Any] | None = None,
    limit: int | None = None,
    told: dict[str, Any] | None = None,
) -> tuple[int, str]:
    """How a life ends and what it says."""
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(reader)
        live(arguments, writer, moment, limit)
    os.close(writer)
    telling = Thread(target=tell, args=(child,), kwargs=told) if told else Thread()
    telling.start()
    with open(reader, encoding="utf-8") as pipe:
        said = pipe.read()
    _, status = os.waitpid(child, 0)
    telling.join()
    return os.waitstatus_to_exitcode(status), said


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(life(**json.loads(line))), flush=True)
