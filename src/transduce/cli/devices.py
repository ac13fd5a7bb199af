"""Several processes of the same command on one machine, each a rank; torchrun does it on many machines."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from types import FrameType
from typing import IO

__all__ = ["run_on_devices"]

PATIENCE = 30.0
"""Seconds that the others have to end by themselves when one has failed."""


def run_on_devices(count: int) -> int:
    """Run this very command so many times, as ranks that find each other; the exit code of the first that failed."""
    from transduce.training.ranks import free_port

    cores = os.cpu_count() or 1
    shared = {
        "WORLD_SIZE": str(count),
        "LOCAL_WORLD_SIZE": str(count),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(free_port()),
        "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", str(max(1, cores // count))),
    }
    command = [sys.executable, "-m", "transduce", *sys.argv[1:]]
    ranks = [
        subprocess.Popen(
            command, env=os.environ | shared | {"RANK": str(rank), "LOCAL_RANK": str(rank)}, stderr=subprocess.PIPE
        )
        for rank in range(count)
    ]
    listeners = _show_once(ranks)

    def pass_on(number: int, frame: FrameType | None) -> None:
        for rank in ranks:
            if rank.poll() is None:
                rank.send_signal(number)

    # Ctrl-C reaches the ranks by itself, being typed at all of them; what is sent to us alone is passed on.
    before = signal.signal(signal.SIGINT, signal.SIG_IGN), signal.signal(signal.SIGTERM, pass_on)
    try:
        return _ended(ranks)
    finally:
        signal.signal(signal.SIGINT, before[0])
        signal.signal(signal.SIGTERM, before[1])
        for rank in ranks:
            if rank.poll() is None:
                rank.kill()
        for listener in listeners:
            listener.join()


def _show_once(ranks: list[subprocess.Popen[bytes]]) -> list[threading.Thread]:
    """Show what the ranks complain of, but what several say alike only once."""
    said: set[bytes] = set()

    def listen(pipe: IO[bytes]) -> None:
        for line in pipe:
            if line not in said:
                said.add(line)
                sys.stderr.write(line.decode(errors="replace"))

    threads = [threading.Thread(target=listen, args=(rank.stderr,)) for rank in ranks]
    for thread in threads:
        thread.start()
    return threads


def _ended(ranks: list[subprocess.Popen[bytes]]) -> int:
    """Wait for all, or for the first that fails and then a little for the others."""
    failed, deadline = 0, None
    while any(rank.poll() is None for rank in ranks):
        codes = [rank.poll() for rank in ranks]
        if not failed and (failed := next((code for code in codes if code), 0)):
            deadline = time.monotonic() + PATIENCE
        if deadline is not None and time.monotonic() > deadline:
            break
        time.sleep(0.05)
    failed = failed or next((code for rank in ranks if (code := rank.poll())), 0)
    return 128 - failed if failed < 0 else failed
