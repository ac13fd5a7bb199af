"""What stands before every route: size and patience for requests, headers for safety, figures and a log line.

A log line says what was asked for and how it went, never what was in it.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
import traceback
from collections.abc import Awaitable, Callable, MutableMapping
from typing import Any, NoReturn

from transduce.serve.limits import Limits, Refusal
from transduce.serve.metrics import Metrics

__all__ = ["Gate", "refused"]

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]

LOGGER = logging.getLogger("transduce.serve")
HEADERS = [
    (b"content-security-policy", b"default-src 'self'; img-src 'self' data: blob:; object-src 'none'; "
                                 b"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"no-referrer"),
    (b"cross-origin-opener-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), microphone=(), geolocation=()"),
]  # fmt: skip
CLOSE = (b"connection", b"close")


class Gate:
    """An ASGI application around another. While it is `stopping`, nobody is to keep a connection for later."""

    def __init__(self, app: Any, limits: Limits, metrics: Metrics, stopping: Callable[[], bool]) -> None:
        self._app, self._limits, self._metrics, self._stopping = app, limits, metrics, stopping

    async def __call__(self, scope: Message, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        started, status, begun = time.perf_counter(), 500, False

        async def answer(message: Message) -> None:
            nonlocal status, begun
            if message["type"] == "http.response.start":
                status, begun = message["status"], True
                message["headers"] = [*message.get("headers", []), *HEADERS, *([CLOSE] if self._stopping() else [])]
            await send(message)

        try:
            body = await self._body(scope, receive)
            await self._app(scope, _replayed(body, receive), answer)
        except Refusal as refusal:
            await _send(answer, refusal)
        except Exception as error:
            LOGGER.error("%s at %s", type(error).__name__, _place(error))  # not its words: they may hold a user's text
            if not begun:
                await _send(answer, Refusal(500, "error", "Something went wrong here; it has been noted."))
        finally:
            seconds = time.perf_counter() - started
            route = getattr(scope.get("route"), "path", "other")
            self._metrics.request(route, status, seconds)
            LOGGER.info("%s %s %d %.0f ms", scope["method"], route, status, 1000 * seconds)

    async def _body(self, scope: Message, receive: Receive) -> bytes:
        """All of a request's body, if it is not too large and does not take too long."""
        most = self._limits.body
        length = dict(scope["headers"]).get(b"content-length", b"0")
        if length.isdigit() and int(length) > most:
            self._refuse(413, "body", f"A request may have {most} bytes, this one has {int(length)}.")
        try:
            return await asyncio.wait_for(self._received(receive, most), self._limits.seconds)
        except asyncio.TimeoutError:  # before Python 3.11 not the built-in one
            self._refuse(408, "slow", f"The request did not arrive within {self._limits.seconds:g} seconds.")

    async def _received(self, receive: Receive, most: int) -> bytes:
        body, more = bytearray(), True
        while more:
            message = await receive()
            if message["type"] == "http.disconnect":
                self._refuse(499, "gone", "The caller has gone.")
            body += message.get("body", b"")
            more = message.get("more_body", False)
            if len(body) > most:
                self._refuse(413, "body", f"A request may have {most} bytes, this one has more.")
        return bytes(body)

    def _refuse(self, status: int, reason: str, message: str) -> NoReturn:
        self._metrics.refusal(reason)
        raise Refusal(status, reason, message)


def refused(refusal: Refusal) -> tuple[bytes, dict[str, str]]:
    """Body and headers of a refusal: LibreTranslate's shape."""
    headers = {"content-type": "application/json"}
    if refusal.retry_after is not None:
        headers["retry-after"] = str(refusal.retry_after)
    return json.dumps({"error": refusal.message}, ensure_ascii=False).encode("utf-8", "replace"), headers


async def _send(send: Send, refusal: Refusal) -> None:
    body, headers = refused(refusal)
    headers |= {"content-length": str(len(body)), "connection": "close"}  # what is left of the request is not read
    pairs = [(name.encode(), value.encode()) for name, value in headers.items()]
    await send({"type": "http.response.start", "status": refusal.status, "headers": pairs})
    await send({"type": "http.response.body", "body": body})


def _replayed(body: bytes, receive: Receive) -> Receive:
    """Gives the body that has been read already, then whatever comes, such as the caller's going."""
    given = False

    async def replay() -> Message:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return replay


def _place(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    return f"{frames[-1].filename.rsplit('transduce', 1)[-1]}:{frames[-1].lineno}" if frames else "unknown"
