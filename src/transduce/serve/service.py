"""What every door of the service leads to: who may enter, and how a text becomes a translation."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar

from fastapi import Request

from transduce.attention_lens.alignment import Link
from transduce.errors import ConfigError, InputError, ModelError
from transduce.serve.limits import Keys, Limits, Rates, Refusal
from transduce.serve.metrics import Metrics
from transduce.serve.models import ServedModel, ServedModels
from transduce.serve.queue import BATCH_TOKENS, DecodingQueue
from transduce.translator import Sentences, Translation

__all__ = ["Service", "search_options"]

Answer = TypeVar("Answer")

QUICK = 2000
"""Characters that are cut into sentences and tokens at once; more would hold up other requests, and go to a thread."""


class Service:
    """Models, their queue, limits, keys and figures."""

    def __init__(
        self,
        models: ServedModels,
        limits: Limits | None = None,
        keys: Keys | None = None,
        workers: int = 2,
        batch_tokens: int = BATCH_TOKENS,
    ) -> None:
        self.models, self.limits, self.keys = models, limits or Limits(), keys
        self.metrics = Metrics()
        self.queue = DecodingQueue(
            workers, self.limits.waiting, batch_tokens, ahead=int(batch_tokens > 1), noted=self.metrics.batch
        )
        self.metrics.waiting = lambda: self.queue.waiting
        self._rates = Rates(self.limits.requests_per_minute)
        self._looking = asyncio.Semaphore(1)
        self.stopping = False
        """Whether it has been told to stop; it still answers for a while."""

    def admit(self, request: Request, key: str | None = None) -> None:
        """Count a request for whoever sends it; refused without a key where one is needed."""
        address = request.client.host if request.client else "unknown"
        if self.keys is None:
            self._rates.count(address)
            return
        scheme, _, token = request.headers.get("authorization", "").partition(" ")
        given = key or (token.strip() if scheme.lower() == "bearer" else "")
        holder = self.keys.holder(given)
        self._rates.count(holder or f"no key: {address}")
        if holder is None:
            message = "This key is not known here." if given else "A key is needed: give it as api_key."
            raise Refusal(403, "key", message)

    def check_ready(self) -> None:
        """Refused while another replica had better be asked: when this one stops, or has its hands full."""
        if self.stopping:
            raise Refusal(503, "not ready", "The service is stopping.", retry_after=1)
        if self.queue.full:
            raise Refusal(503, "not ready", "The service is busy: too many sentences wait.", retry_after=1)

    async def translate(
        self, request: Request, model: ServedModel, target: str | None, texts: list[str], **options: Any
    ) -> list[Translation]:
        """Translations of texts, decoded together with what else is asked at the time."""
        return (await self._decode(request, model, target, texts, options))[0]

    async def align(
        self, request: Request, model: ServedModel, target: str | None, texts: list[str], **options: Any
    ) -> tuple[list[Translation], list[list[Link]]]:
        """As `translate`, and which words come from which."""
        translations, sentences = await self._decode(request, model, target, texts, options)
        return translations, await self.look(request, model.translator.align, texts, translations, sentences)

    async def look(self, request: Request, work: Any, *arguments: Any, **options: Any) -> Any:
        """What only PyTorch can tell, such as attention: on a thread, one request at a time."""

        async def looked() -> Any:
            async with self._looking:
                return await asyncio.to_thread(work, *arguments, **options)

        return await self.answer(request, looked())

    async def _decode(
        self, request: Request, model: ServedModel, target: str | None, texts: list[str], options: dict[str, Any]
    ) -> tuple[list[Translation], Sentences]:
        """The translations of texts, and the sentences that they are made of."""
        self.queue.check(len(texts))  # before anything is done for it

        async def decoded() -> tuple[list[Translation], Sentences]:
            translator, characters = model.translator, sum(map(len, texts))
            # A request for something else than the way back gets that.
            asks_back = translator.back is not None and options.get("beam") != 1 and not options.get("mbr")
            aside = _aside if characters > QUICK or asks_back else _at_once
            sentences = await aside(translator.sentences, texts, model.to(target), back=asks_back, **options)
            again = False
            while batches := sentences.wanted():
                found = await asyncio.gather(
                    *(self.queue.decode(translator.engine, *batch, again=again) for batch in batches)
                )
                if not again:
                    self.metrics.translated(model.name, sum(map(len, found)), characters)
                await aside(sentences.take, found)
                again = True
            translations = sentences.translations()
            for each in translations:
                self.metrics.guarded(model.name, each.redone, [flag.code for flag in each.warnings])
            return translations, sentences

        return await self.answer(request, decoded())

    async def answer(self, request: Request, work: Coroutine[Any, Any, Answer]) -> Answer:
        """The outcome of some work, unless it takes too long; it is given up when the caller has gone."""
        task = asyncio.ensure_future(work)
        gone = asyncio.ensure_future(_gone(request))
        try:
            await asyncio.wait({task, gone}, timeout=self.limits.seconds, return_when=asyncio.FIRST_COMPLETED)
            if task.done():
                return task.result()
            if gone.done():
                raise Refusal(499, "gone", "The caller has gone.")
            seconds = self.limits.seconds
            raise Refusal(503, "time", f"This takes longer than {seconds:g} seconds.", retry_after=round(seconds) or 1)
        except (ConfigError, InputError) as error:
            raise Refusal(400, "request", f"{error.what} {error.remedy or ''}".strip()) from error
        except ModelError as error:
            raise Refusal(500, "model", "The model could not translate this.") from error
        finally:
            task.cancel()
            gone.cancel()


def search_options(n_best: int, beam: int | None = None) -> dict[str, Any]:
    """Decoding options for so many translations: the model's own beam, unless another is asked or needed."""
    return {"n_best": n_best, "beam": None if beam is None else max(beam, n_best)}


async def _aside(work: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
    return await asyncio.to_thread(work, *arguments, **options)


async def _at_once(work: Callable[..., Answer], *arguments: Any, **options: Any) -> Answer:
    return work(*arguments, **options)


async def _gone(request: Request) -> None:
    """Wait until the caller hangs up."""
    while (await request.receive())["type"] != "http.disconnect":
        pass
