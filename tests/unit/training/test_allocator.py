"""Freed memory serves again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from transduce.training.allocator import freed_memory_kept

FAULTS = """
import resource
from pathlib import Path
import torch
from transduce.training.allocator import freed_memory_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(48 * 2**20 // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def pages():
    return int(Path("/proc/self/statm").read_text().split()[1])

default = faults()
with freed_memory_kept() as took:
    faults()  # what is kept must have been had
    faults()
    kept = faults()
    held = pages()
print(took, default, kept, held - pages())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_the_same_pages_are_used_again() -> None:
    import resource  # not on Windows

    told = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True).stdout.split()
    if told[0] == "False":
        pytest.skip("not glibc")
    default, kept, given_back = map(int, told[1:])
    # 48 MB are 12,288 pages of 4 KB; huge pages are fewer, so only multiples are compared.
    assert default > 100
    assert kept < default / 20
    assert given_back * resource.getpagesize() > 40 * 2**20


def test_elsewhere_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with freed_memory_kept() as took:
        assert not took
