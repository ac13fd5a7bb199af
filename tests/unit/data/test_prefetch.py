"""Working ahead changes nothing but the waiting: same items, same order, errors in their place, no thread left."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator

import pytest

from transduce.data.prefetch import prefetched

PATIENCE = 10.0
"""Seconds after which something that should happen at once is taken never to happen."""


def failing(after: int, error: BaseException) -> Iterator[int]:
    yield from range(after)
    raise error


@pytest.fixture(autouse=True)
def _no_thread_is_left() -> Iterator[None]:
    before = set(threading.enumerate())
    yield
    assert set(threading.enumerate()) <= before


@pytest.mark.parametrize("ahead", [1, 2, 8, 1000])
@pytest.mark.parametrize("count", [0, 1, 7, 300])
def test_the_same_items_come_in_the_same_order(count: int, ahead: int) -> None:
    assert list(prefetched(range(count), ahead)) == list(range(count))


def test_none_and_errors_can_be_items() -> None:
    items = [None, ValueError("an item"), False]
    assert list(prefetched(items)) == items


@pytest.mark.parametrize("after", [0, 1, 20])
@pytest.mark.parametrize("error", [ValueError("broken"), KeyboardInterrupt()])
def test_an_error_arrives_where_its_item_would_have(after: int, error: BaseException) -> None:
    stream = prefetched(failing(after, error), ahead=4)
    assert [next(stream) for _ in range(after)] == list(range(after))
    with pytest.raises(type(error)) as caught:
        next(stream)
    assert caught.value is error
    assert list(stream) == []


def test_items_are_made_before_they_are_asked_for() -> None:
    ahead, made = 5, []
    enough = threading.Event()

    def items() -> Iterator[int]:
        for number in range(100):
            made.append(number)
            if len(made) == 1 + ahead:
                enough.set()
            yield number

    stream = prefetched(items(), ahead)
    assert next(stream) == 0
    assert enough.wait(PATIENCE)  # while nobody asks for more
    stream.close()  # type: ignore[attr-defined]


def test_no_more_is_made_than_ahead_asks_for() -> None:
    ahead, most = 3, 0
    taken = 0

    def items() -> Iterator[int]:
        nonlocal most
        for number in range(200):
            most = max(most, number + 1 - taken)
            yield number

    for number in prefetched(items(), ahead):
        taken = number
    # Beside those that wait there may be one in the consumer's hands and one in the maker's.
    assert most <= ahead + 3


def leave_by_closing(stream: Iterator[int]) -> None:
    next(stream)
    stream.close()  # type: ignore[attr-defined]


def leave_by_break(stream: Iterator[int]) -> None:
    for _ in stream:
        break
    del stream


def leave_by_error(stream: Iterator[int]) -> None:
    with pytest.raises(ZeroDivisionError):  # noqa: PT012
        for number in stream:
            1 / number
    stream.close()  # type: ignore[attr-defined]


@pytest.mark.parametrize("leave", [leave_by_closing, leave_by_break, leave_by_error])
def test_leaving_early_ends_the_thread_and_closes_what_is_read(leave: Callable[[Iterator[int]], None]) -> None:
    closed = threading.Event()

    def endless() -> Iterator[int]:
        try:
            number = 0
            while True:
                yield number
                number += 1
        finally:
            closed.set()

    before = threading.active_count()
    leave(prefetched(endless(), ahead=2))
    assert threading.active_count() == before
    assert closed.wait(PATIENCE)


def test_nothing_is_made_before_the_first_item_is_asked_for() -> None:
    before = threading.active_count()
    stream = prefetched(failing(0, ValueError("made too early")))
    assert threading.active_count() == before
    del stream
