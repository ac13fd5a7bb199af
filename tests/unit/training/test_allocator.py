"""Freed memory serves again."""

from __future__ import annotations

import subprocess
import sys

import pytest

from transduce.training.allocator import freed_memory_kept

FAULTS = """
import resource
import torch
from transduce.training.allocator import freed_memory_kept

def faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    for _ in range(5):
        torch.ones(48 * 2**20 // 4)
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

default = faults()
with freed_memory_kept() as took:
    faults()  # what is kept must have been had
    faults()
    kept = faults()
print(took, default, kept, faults())
"""


@pytest.mark.skipif(sys.platform != "linux", reason="glibc's")
def test_the_same_pages_are_used_again() -> None:
    told = subprocess.run([sys.executable, "-c", FAULTS], capture_output=True, text=True, check=True).stdout.split()
    if told[0] == "False":
        pytest.skip("not glibc")
    default, kept, after = map(int, told[1:])
    # 48 MB are 12,288 pages of 4 KB; huge pages are fewer, so only multiples are compared.
    assert default > 100
    assert kept < default / 20
    assert after > default / 2


def test_elsewhere_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "win32")
    with freed_memory_kept() as took:
        assert not took
