"""The service as a web application: its routes, its page, and what is the same for all of them."""

from __future__ import annotations

import hashlib
import mimetypes
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, FastAPI, Request, Response
from starlette.exceptions import HTTPException

import transduce
from transduce.attention_lens import static_files
from transduce.serve.api import own_api
from transduce.serve.gate import Gate, refused
from transduce.serve.libretranslate import libretranslate
from transduce.serve.limits import Refusal
from transduce.serve.messages import ErrorMessage
from transduce.serve.service import Service

__all__ = ["make_app"]

STATUSES = {
    400: "The request makes no sense; the message says why.",
    403: "A key is needed, or it is not known.",
    404: "There is no such model or direction.",
    408: "The request took too long to arrive.",
    413: "Too many characters, texts or bytes.",
    415: "Neither JSON nor a form.",
    429: "Too many requests; Retry-After says when to try again.",
    500: "Our fault.",
    503: "Busy, or it took too long; Retry-After says when to try again.",
}


def make_app(service: Service) -> Gate:
    """The application that a server such as uvicorn runs."""

    @asynccontextmanager
    async def life(app: FastAPI) -> AsyncIterator[None]:
        yield
        service.queue.close()

    app = FastAPI(
        title="transduce",
        version=transduce.__version__,
        description="Translate with your own models. The API of LibreTranslate, and more under /v1.",
        lifespan=life,
        docs_url=None,  # the usual page loads scripts from elsewhere; ours is below
        redoc_url=None,
    )
    errors: dict[int | str, dict[str, Any]] = {
        status: {"model": ErrorMessage, "description": text} for status, text in STATUSES.items()
    }
    app.include_router(libretranslate(service), responses=errors)
    app.include_router(own_api(service), responses=errors)
    app.include_router(_page(), include_in_schema=False)

    @app.exception_handler(Refusal)
    async def refuse(request: Request, refusal: Refusal) -> Response:
        service.metrics.refusal(refusal.reason)
        body, headers = refused(refusal)
        return Response(body, refusal.status, headers)

    @app.exception_handler(HTTPException)
    async def unknown(request: Request, error: HTTPException) -> Response:
        words = {404: "There is nothing here.", 405: "This cannot be done here with this method."}
        body, headers = refused(Refusal(error.status_code, "route", words.get(error.status_code, error.detail)))
        return Response(body, error.status_code, headers | dict(error.headers or {}))

    return Gate(app, service.limits, service.metrics, lambda: service.stopping)


def _page() -> APIRouter:
    """The page and its files, held in memory."""
    router = APIRouter()
    own = files("transduce.serve") / "static"
    found = {name: path.read_bytes() for name, path in static_files().items()}
    found |= {entry.name: entry.read_bytes() for entry in own.iterdir() if entry.is_file()}

    def respond(request: Request, name: str) -> Response:
        if name not in found:
            raise HTTPException(404)
        tag = f'"{hashlib.sha256(found[name]).hexdigest()[:16]}"'
        headers = {"etag": tag, "cache-control": "no-cache"}
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        return Response(found[name], headers=headers, media_type=_media_type(name))

    @router.get("/")
    async def page(request: Request) -> Response:
        return respond(request, "index.html")

    @router.get("/docs")
    async def docs(request: Request) -> Response:
        return respond(request, "docs.html")

    @router.get("/favicon.ico")
    async def icon(request: Request) -> Response:
        return respond(request, "icon.svg")

    @router.get("/static/{name}")
    async def static(request: Request, name: str) -> Response:
        return respond(request, name)

    return router


def _media_type(name: str) -> str:
    # Not left to the system's tables, which on Windows can say that a script is plain text.
    known = {"js": "text/javascript", "css": "text/css", "html": "text/html", "svg": "image/svg+xml"}
    return known.get(name.rpartition(".")[2]) or mimetypes.guess_type(name)[0] or "application/octet-stream"
