"""Ranks that run the command line, each a fork of this process, so that PyTorch is loaded once for all of them.

Reads a crew a line, as JSON: how many, and with which arguments. Prints for each rank how it has ended (its exit code,
or minus the signal) and what it has said, as JSON. A rank that has failed has the others ended after a while, as
torchrun does it.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import tempfile
import time
from typing import NoReturn

# What a training run loads at some time, loaded once before the forks.
import ctranslate2.specs  # noqa: F401
import torch.distributed.fsdp
import torch.distributed.tensor
import torch.utils.tensorboard
from tests.commands import end_as_command

import transduce.training.run  # noqa: F401
from transduce.training.ranks import free_port

torch.set_num_threads(1)
SOON = 10.0


def serve(rank: int, count: int, port: int, arguments: list[str], output: int) -> NoReturn:
    """Be one rank."""
    os.dup2(output, 1)
    os.dup2(output, 2)
    places = {"RANK": rank, "LOCAL_RANK": rank, "WORLD_SIZE": count, "MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ |= {name: str(value) for name, value in places.items()}
    end_as_command(arguments)


def crew(count: int, arguments: list[str]) -> list[tuple[int, str]]:
    """How the ranks have ended and what they have said."""
    port = free_port()
    files, members = [], []
    for rank in range(count):
        file = tempfile.TemporaryFile()  # noqa: SIM115
        files.append(file)
        child = os.fork()
        if child == 0:
            serve(rank, count, port, arguments, file.fileno())
        members.append(child)
    codes: dict[int, int] = {}
    deadline = None
    while len(codes) < count:
        ended, status = os.waitpid(-1, os.WNOHANG)
        if ended:
            codes[ended] = os.waitstatus_to_exitcode(status)
            deadline = deadline or (time.monotonic() + SOON if codes[ended] else None)
        elif deadline and time.monotonic() > deadline:
            for member in set(members) - codes.keys():
                os.kill(member, signal.SIGKILL)
            deadline = None
        else:
            time.sleep(0.01)
    said = []
    for file in files:
        file.seek(0)
        said.append(file.read().decode())
    return [(codes[member], words) for member, words in zip(members, said, strict=True)]


if __name__ == "__main__":
    for line in sys.stdin:
        print(json.dumps(crew(**json.loads(line))), flush=True)
