"""Dynamic batching: sentences of requests that wait at the same time are decoded together.

While a worker is free, nothing waits for company. While all are at work, what comes in quick succession is gathered,
and one batch is kept ready, so that no worker waits. Every request that waits gets its share of each batch, so a long
document does not hold up a short sentence.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from queue import SimpleQueue

from transduce.decoding import DecodingOptions, Hypothesis
from transduce.engines.engine import Engine
from transduce.errors import ModelError
from transduce.serve.limits import Refusal

__all__ = ["DecodingQueue"]

BATCH_TOKENS = 512
"""Source tokens that are decoded together."""
SENTENCES_A_SECOND = 200
"""For Retry-After: a guess on the safe side."""
TYPICAL_TOKENS = 16
"""Of a sentence."""
LULL, LONGEST_LULL = 0.002, 0.02
"""Seconds without a new request after which the batch that is kept ready is made up; and after which in any case."""


@dataclass(eq=False)
class _Job:
    """A request's sentences, some of them decoded."""

    engine: Engine
    sources: Sequence[Sequence[int]]
    options: DecodingOptions
    answer: asyncio.Future[list[list[Hypothesis]]]
    prefixes: list[list[int]]
    taken: int = 0
    missing: int = 0
    found: list[list[Hypothesis]] = field(default_factory=list)

    def goes_with(self, other: _Job) -> bool:
        """Whether both can be decoded in one go."""
        if self.engine is not other.engine or bool(self.options.prefix) != bool(other.options.prefix):
            return False
        mine, theirs = self.options, other.options
        return mine == theirs or mine.replace(prefix=()) == theirs.replace(prefix=())


@dataclass
class _Batch:
    """Sentences on their way: which of which job."""

    jobs: list[_Job]
    places: list[int]

    @property
    def options(self) -> DecodingOptions:
        options = self.jobs[0].options
        if not options.prefix:
            return options
        return options.replace(prefix=[job.prefixes[place] for job, place in zip(self.jobs, self.places, strict=True)])

    def decode(self) -> list[list[Hypothesis]]:
        sources = [job.sources[place] for job, place in zip(self.jobs, self.places, strict=True)]
        return self.jobs[0].engine.decode(sources, self.options)


class DecodingQueue:
    """Decodes what requests hand over: `workers` batches at once, and `ahead` more are kept ready.

    So many sentences may wait. `noted` is called with the number of sentences of each batch.
    """

    def __init__(
        self,
        workers: int,
        waiting: int,
        batch_tokens: int = BATCH_TOKENS,
        ahead: int = 1,
        noted: Callable[[int], None] = lambda sentences: None,
    ) -> None:
        self._most, self._batch_tokens, self._noted = waiting, batch_tokens, noted
        self._workers, self._free, self._slots = workers, workers + ahead, workers + ahead
        self._jobs: deque[_Job] = deque()
        self._gathering: asyncio.TimerHandle | None = None
        self._since = 0.0
        self._batches: SimpleQueue[tuple[asyncio.AbstractEventLoop, _Batch] | None] = SimpleQueue()
        # Daemons: a batch that takes longer than a shutdown may last does not hold it up.
        for number in range(self._slots):
            threading.Thread(target=self._work, name=f"decoding-{number}", daemon=True).start()

    @property
    def waiting(self) -> int:
        """Sentences that wait."""
        return sum(len(job.sources) - job.taken for job in self._jobs)

    @property
    def full(self) -> bool:
        """Whether not one more may wait."""
        return self.waiting >= self._most

    async def decode(
        self, engine: Engine, sources: Sequence[Sequence[int]], options: DecodingOptions, again: bool = False
    ) -> list[list[Hypothesis]]:
        """For each source its hypotheses; refused at once if too many wait already. Who cancels it leaves the queue.

        What is decoded `again` belongs to a request that was let in, and is not refused.
        """
        if not sources:
            return []
        if not again:
            self.check(len(sources))
        job = _Job(
            engine,
            sources,
            options,
            asyncio.get_running_loop().create_future(),
            options.prefixes(len(sources)),
            missing=len(sources),
            found=[[] for _ in sources],
        )
        self._jobs.append(job)
        self._gather()
        try:
            return await job.answer
        finally:
            if job in self._jobs:
                self._jobs.remove(job)

    def check(self, sentences: int) -> None:
        """Refuse so many more sentences if too many wait already."""
        waiting = self.waiting
        if waiting and waiting + sentences > self._most:
            seconds = max(1, math.ceil(waiting / SENTENCES_A_SECOND))
            raise Refusal(503, "queue", "The service is busy: too many sentences wait.", retry_after=seconds)

    def close(self) -> None:
        """End the threads when they have done what they are at."""
        for _ in range(self._slots):
            self._batches.put(None)

    def _gather(self) -> None:
        """Start a batch now, or when nothing has come for a moment."""
        if not self._free or not self._jobs:
            return
        loop = asyncio.get_running_loop()
        if self._gathering is None:
            self._since = loop.time()
        else:
            self._gathering.cancel()
        enough = self.waiting >= self._batch_tokens // TYPICAL_TOKENS
        if self._slots - self._free < self._workers or enough or loop.time() - self._since >= LONGEST_LULL:
            self._fill()
        else:
            self._gathering = loop.call_later(LULL, self._fill)

    def _fill(self) -> None:
        self._gathering = None
        while self._free and self._jobs:
            self._free -= 1
            batch = self._next_batch()
            self._noted(len(batch.places))
            self._batches.put((asyncio.get_running_loop(), batch))

    def _next_batch(self) -> _Batch:
        """A sentence of each job in turn, of those that go with the first, until there are tokens enough."""
        first = self._jobs[0]
        turn = deque(job for job in self._jobs if job.goes_with(first))
        batch, tokens = _Batch([], []), 0
        while turn:
            job = turn.popleft()
            size = len(job.sources[job.taken]) + 1
            if batch.jobs and tokens + size > self._batch_tokens:
                break
            batch.jobs.append(job)
            batch.places.append(job.taken)
            tokens += size
            job.taken += 1
            if job.taken < len(job.sources):
                turn.append(job)
        # Whoever had a share of this batch is last in line for the next; the others keep their order.
        served = dict.fromkeys(batch.jobs)
        others = [job for job in self._jobs if job not in served]
        self._jobs = deque([*others, *(job for job in served if job.taken < len(job.sources))])
        return batch

    def _work(self) -> None:
        while (given := self._batches.get()) is not None:
            loop, batch = given
            try:
                found: list[list[Hypothesis]] | Exception = batch.decode()
            except Exception as error:  # whatever it is, the requests must hear of it and the thread go on
                found = error
            try:
                loop.call_soon_threadsafe(self._deliver, batch, found)
            except RuntimeError:  # the service has ended meanwhile
                return

    def _deliver(self, batch: _Batch, found: list[list[Hypothesis]] | Exception) -> None:
        self._free += 1
        if isinstance(found, Exception):
            for job in dict.fromkeys(batch.jobs):
                if job in self._jobs:
                    self._jobs.remove(job)
                if not job.answer.done():
                    job.answer.set_exception(ModelError("the model could not translate this."))
                    job.answer.exception()  # a caller that has gone will not ask for it
        else:
            for job, place, hypotheses in zip(batch.jobs, batch.places, found, strict=True):
                job.found[place] = hypotheses
                job.missing -= 1
                if not job.missing and not job.answer.done():
                    job.answer.set_result(job.found)
        self._gather()
