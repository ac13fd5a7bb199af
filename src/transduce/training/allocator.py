"""Memory that was freed serves again at once, while training.

PyTorch on a CPU asks the C library for the buffers of every operation. By default glibc gets large ones from the kernel
and gives them back when they are freed, so the next operation has its buffer filled in again page by page.
"""

from __future__ import annotations

import ctypes
import sys
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["freed_memory_kept"]

# Of glibc's malloc.h.
M_TRIM_THRESHOLD, M_MMAP_MAX, M_ARENA_MAX = -1, -4, -8
WHILE = {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1, M_ARENA_MAX: 1}
"""Nothing mapped, nothing given back, one heap for all threads (they ask for few buffers, and large ones)."""
AFTER = {M_MMAP_MAX: 65536, M_TRIM_THRESHOLD: 128 * 1024, M_ARENA_MAX: 0}
"""What glibc starts with; 0 is no limit."""


@contextmanager
def freed_memory_kept() -> Iterator[bool]:
    """Until the end of the block; tells whether the C library agreed. Other libraries than glibc are left alone."""
    library = _glibc()
    if library is None:
        yield False
        return
    try:
        yield all(library.mallopt(option, value) for option, value in WHILE.items())
    finally:
        for option, value in AFTER.items():
            library.mallopt(option, value)
        library.malloc_trim(0)


def _glibc() -> ctypes.CDLL | None:
    if sys.platform != "linux":
        return None
    library = ctypes.CDLL(None)
    # musl has neither of these.
    return library if hasattr(library, "mallopt") and hasattr(library, "gnu_get_libc_version") else None
