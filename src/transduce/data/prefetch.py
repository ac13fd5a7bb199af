"""Work ahead in a background thread, so that whoever consumes never waits for whoever makes."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterable, Iterator
from typing import TypeVar

__all__ = ["prefetched"]

Item = TypeVar("Item")


def prefetched(items: Iterable[Item], ahead: int = 8) -> Iterator[Item]:
    """The same items in the same order, made up to `ahead` of need; an error comes where its item would have."""
    made: queue.Queue[tuple[Item | None, BaseException | None, bool]] = queue.Queue(maxsize=ahead)
    left = threading.Event()

    def put(entry: tuple[Item | None, BaseException | None, bool]) -> bool:
        while not left.is_set():
            try:
                made.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def make() -> None:
        try:
            for item in items:
                if not put((item, None, False)):
                    return
            put((None, None, True))
        except BaseException as error:
            put((None, error, True))

    thread = threading.Thread(target=make, daemon=True)
    thread.start()
    try:
        while True:
            item, error, last = made.get()
            if error is not None:
                raise error
            if last:
                return
            yield item  # type: ignore[misc]
    finally:  # also when the consumer leaves early
        left.set()
        thread.join()
