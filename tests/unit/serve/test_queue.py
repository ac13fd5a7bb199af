"""What waits together is decoded together; everyone has a share; who leaves is not decoded."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from typing import Any

import pytest

from transduce.decoding import DecodingOptions, Hypothesis
from transduce.engines.engine import Engine
from transduce.errors import ModelError
from transduce.serve.limits import Refusal
from transduce.serve.queue import DecodingQueue

PLAIN = DecodingOptions()


class Gated(Engine):
    """Says what it hears, a batch each time it is let; what it was given can be read."""

    def __init__(self) -> None:
        self.batches: list[list[Sequence[int]]] = []
        self.prefixes: list[Any] = []
        self.begun, self.let = threading.Semaphore(0), threading.Semaphore(0)

    def decode(self, sources: Sequence[Sequence[int]], options: DecodingOptions) -> list[list[Hypothesis]]:
        self.batches.append(list(sources))
        self.prefixes.append(options.prefix)
        self.begun.release()
        assert self.let.acquire(timeout=20)
        if [13] in sources:
            raise RuntimeError("thirteen")
        return [[Hypothesis(list(source), 0.0, 0.0, [])] for source in sources]


def run(test: Callable[[Gated, DecodingQueue], Any], **options: Any) -> None:
    """A test with an engine and a queue that has one batch at a time."""

    async def running() -> None:
        engine = Gated()
        queue = DecodingQueue(**{"workers": 1, "waiting": 100, "batch_tokens": 8, "ahead": 0} | options)
        try:
            await test(engine, queue)
        finally:
            queue.close()

    asyncio.run(running())


async def started(engine: Gated) -> None:
    assert await asyncio.to_thread(engine.begun.acquire, timeout=20)


def ask(queue: DecodingQueue, engine: Gated, sources: list[list[int]], options: DecodingOptions = PLAIN) -> Any:
    return asyncio.create_task(queue.decode(engine, sources, options))


def test_what_waits_is_decoded_together_and_comes_back_to_whom_it_belongs() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        tasks = [ask(queue, engine, [[5]])]
        await started(engine)
        tasks += [ask(queue, engine, [[number], [number + 1]]) for number in (20, 30)]
        await asyncio.sleep(0)
        engine.let.release(2)
        found = await asyncio.gather(*tasks)
        assert engine.batches == [[[5]], [[20], [30], [21], [31]]]
        assert [[each[0].tokens for each in one] for one in found] == [[[5]], [[20], [21]], [[30], [31]]]

    run(test)


def test_a_long_job_gives_way_to_a_short_one() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        long = ask(queue, engine, [[number] for number in range(40, 60)])
        await started(engine)
        short = ask(queue, engine, [[7]])
        await asyncio.sleep(0)
        engine.let.release(2)
        assert (await short)[0][0].tokens == [7]
        assert [7] in engine.batches[1]
        assert not long.done()
        engine.let.release(20)
        assert len(await long) == 20
        assert max(map(len, engine.batches)) == 4  # of two tokens each, the end included

    run(test)


def test_a_sentence_longer_than_a_batch_goes_alone() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        engine.let.release(5)
        found = await ask(queue, engine, [[3] * 50, [4], [5] * 7])
        assert [len(each[0].tokens) for each in found] == [50, 1, 7]
        assert [len(batch) for batch in engine.batches] == [1, 1, 1]

    run(test)


def test_other_options_and_other_models_are_other_batches() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        other = Gated()
        first = ask(queue, engine, [[1]])
        await started(engine)
        tasks = [
            ask(queue, engine, [[2]]),
            ask(queue, engine, [[3]], DecodingOptions(beam=2)),
            ask(queue, other, [[4]]),
            ask(queue, engine, [[5]], DecodingOptions(prefix=[8])),
            ask(queue, engine, [[6]], DecodingOptions(prefix=[9, 9])),
            ask(queue, engine, [[7]]),
        ]
        await asyncio.sleep(0)
        engine.let.release(9)
        other.let.release(9)
        await asyncio.gather(first, *tasks)
        assert engine.batches == [[[1]], [[2], [7]], [[3]], [[5], [6]]]
        assert engine.prefixes == [(), (), (), [[8], [9, 9]]]
        assert other.batches == [[[4]]]

    run(test)


def test_one_batch_is_kept_ready_and_gathers_what_comes_meanwhile() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        tasks = [ask(queue, engine, [[1]])]
        await started(engine)
        tasks += [ask(queue, engine, [[2]]), ask(queue, engine, [[3]])]
        await started(engine)  # has begun, though the first is not done
        tasks += [ask(queue, engine, [[4]])]
        await asyncio.sleep(0.1)
        assert engine.batches == [[[1]], [[2], [3]]]
        engine.let.release(9)
        await asyncio.gather(*tasks)
        assert engine.batches[2:] == [[[4]]]

    run(test, ahead=1, batch_tokens=64)


def test_who_gives_up_is_not_decoded() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        first = ask(queue, engine, [[1]])
        await started(engine)
        gone, stays = ask(queue, engine, [[2]] * 6), ask(queue, engine, [[3]])
        await asyncio.sleep(0)
        gone.cancel()
        await asyncio.sleep(0)
        assert queue.waiting == 1
        engine.let.release(9)
        await asyncio.gather(first, stays)
        assert engine.batches == [[[1]], [[3]]]

    run(test)


def test_too_many_are_refused_at_once_but_an_empty_queue_takes_anything() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        tasks = [ask(queue, engine, [[1]] * 30)]  # more than may wait, but nobody does
        await started(engine)
        assert queue.waiting == 26
        with pytest.raises(Refusal) as refusal:
            await queue.decode(engine, [[2]], PLAIN)
        assert (refusal.value.status, refusal.value.retry_after) == (503, 1)
        engine.let.release(99)
        await asyncio.gather(*tasks)
        assert await queue.decode(engine, [[2]], PLAIN)

    run(test, waiting=20)


def test_an_engine_that_fails_fails_its_own_batch_only() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        engine.let.release(9)
        with pytest.raises(ModelError, match="could not translate"):
            await queue.decode(engine, [[1], [13], [2]], PLAIN)
        assert (await queue.decode(engine, [[4]], PLAIN))[0][0].tokens == [4]
        assert queue.waiting == 0

    run(test)


def test_nothing_to_decode_is_nothing() -> None:
    async def test(engine: Gated, queue: DecodingQueue) -> None:
        assert await queue.decode(engine, [], PLAIN) == []
        assert engine.batches == []

    run(test)


def test_batches_are_counted() -> None:
    counts: list[int] = []

    async def test(engine: Gated, queue: DecodingQueue) -> None:
        engine.let.release(9)
        await queue.decode(engine, [[number] for number in range(10)], PLAIN)
        assert counts == [4, 4, 2]

    run(test, noted=counts.append)
