"""Under torchrun, as people start it: a rank that is killed, and two hosts whose link is cut."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.ranks.conftest import Train, checkpoint, events

ENVIRONMENT = os.environ | {"OMP_NUM_THREADS": "1"}
TORCHRUN = [sys.executable, "-m", "torch.distributed.run"]
PATIENCE = 240
DROPOUT = ("model.dropout=0.2", "training.checkpoint_every=5")


def reached(model: Path) -> int:
    """The last step in a run's log."""
    log = model / "log.jsonl"
    whole = log.read_text(encoding="utf-8").rpartition("\n")[0] if log.exists() else ""
    return max((event["step"] for event in events(model, "Stepped")), default=0) if whole else 0


def wait_until(condition: Callable[[], bool], *processes: subprocess.Popen[str]) -> None:
    end = time.monotonic() + PATIENCE
    while not condition() and all(process.poll() is None for process in processes):
        assert time.monotonic() < end
        time.sleep(0.02)


@pytest.mark.skipif(os.name == "nt", reason="SIGKILL is POSIX")
def test_a_killed_rank_costs_the_steps_since_the_last_checkpoint(
    train: Train, arguments: Callable[..., list[str]], tmp_path: Path
) -> None:
    train(2, tmp_path / "whole", *DROPOUT, steps=60)
    model = tmp_path / "killed"
    command = [*TORCHRUN, "--standalone", "--nproc-per-node", "2", "--max-restarts", "2", "--monitor-interval", "0.1"]
    command += ["-m", "transduce", *arguments(model, *DROPOUT, steps=60)]
    process = subprocess.Popen(command, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    wait_until(lambda: reached(model) >= 17, process)
    listed = subprocess.run(
        ["ps", "-o", "pid=", "--ppid", str(process.pid)], capture_output=True, text=True, check=True
    )
    victims = sorted(map(int, listed.stdout.split()))
    assert len(victims) == 2
    os.kill(victims[1], signal.SIGKILL)
    said, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, said
    (resumed,) = events(model, "Resumed")
    steps = [event["step"] for event in events(model, "Stepped")]
    first = steps.index(resumed["step"] + 1, steps.index(resumed["step"] + 1) + 1)  # where it is made again
    assert steps[:first] == list(range(1, resumed["step"] + resumed["repeats"] + 1))
    assert steps[first:] == list(range(resumed["step"] + 1, 61))
    assert 0 < resumed["repeats"] <= 10
    whole, killed = (checkpoint(tmp_path / name, 60) for name in ("whole", "killed"))
    assert all(whole[name].equal(killed[name]) for name in whole)


ADDRESSES = ("10.77.0.1", "10.77.0.2")


@pytest.fixture
def hosts() -> Iterator[tuple[str, str]]:
    """Two network namespaces with a cable between them; nothing else can reach them."""
    if not shutil.which("ip") or not hasattr(os, "geteuid") or os.geteuid() != 0:
        pytest.skip("needs root and iproute2")
    names = (f"transduce-{os.getpid()}-a", f"transduce-{os.getpid()}-b")
    made = [subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False) for name in names]
    try:
        if any(each.returncode for each in made):
            pytest.skip("network namespaces are not allowed here")
        cable = ["ip", "link", "add", "cable", "netns", names[0], "type", "veth", "peer", "cable", "netns", names[1]]
        subprocess.run(cable, check=True)
        for name, address in zip(names, ADDRESSES, strict=True):
            subprocess.run(["ip", "-n", name, "address", "add", f"{address}/24", "dev", "cable"], check=True)
            for device in ("lo", "cable"):
                subprocess.run(["ip", "-n", name, "link", "set", device, "up"], check=True)
        yield names
    finally:
        for name in names:
            subprocess.run(["ip", "netns", "delete", name], capture_output=True, check=False)


def test_two_hosts_train_together_and_a_cut_link_is_said_and_survived(
    hosts: tuple[str, str], arguments: Callable[..., list[str]], tmp_path: Path
) -> None:
    model = tmp_path / "model"
    files = [tmp_path / f"{host}.said" for host in hosts]

    def started(steps: int) -> list[subprocess.Popen[str]]:
        found = []
        for host, address, file in zip(hosts, ADDRESSES, files, strict=True):
            torchrun = ["--nnodes", "2", "--nproc-per-node", "1", "--rdzv-backend", "c10d", "--rdzv-id", "test"]
            torchrun += ["--rdzv-endpoint", f"{ADDRESSES[0]}:29400", "--local-addr", address]
            torchrun += ["--rdzv-conf", f"is_host={int(address == ADDRESSES[0])}"]
            train = arguments(model, "--rank-timeout", "3", "training.checkpoint_every=5", steps=steps)
            command = ["ip", "netns", "exec", host, *TORCHRUN, *torchrun, "-m", "transduce", *train]
            environment = ENVIRONMENT | {"GLOO_SOCKET_IFNAME": "cable"}
            with file.open("w", encoding="utf-8") as said:
                found.append(subprocess.Popen(command, env=environment, stdout=said, stderr=said, text=True))
        return found

    def said() -> list[str]:
        return [file.read_text(encoding="utf-8") for file in files]

    both = started(steps=100_000)
    try:
        wait_until(lambda: reached(model) >= 7, *both)
        subprocess.run(["ip", "-n", hosts[0], "link", "set", "cable", "down"], check=True)
        wait_until(lambda: all("has lost the others" in words for words in said()))
        assert all("goes on from the last checkpoint" in words for words in said())
    finally:  # torchrun itself waits for the other host much longer
        for process in both:
            process.kill()
            process.wait()

    subprocess.run(["ip", "-n", hosts[0], "link", "set", "cable", "up"], check=True)
    end = reached(model) + 20
    both = started(steps=end)
    assert [process.wait(timeout=PATIENCE) for process in both] == [0, 0], said()
    assert reached(model) == end
    assert len(events(model, "Resumed")) == 1
