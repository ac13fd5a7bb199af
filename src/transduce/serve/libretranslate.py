"""The API of LibreTranslate, so that clients made for it work here unchanged."""

from __future__ import annotations

import asyncio
import json
from contextlib import suppress
from dataclasses import asdict
from typing import Any, TypeVar
from urllib.parse import parse_qsl

from fastapi import APIRouter, Request, Response
from pydantic import BaseModel

from transduce.serve.detection import Guess, detect, detect_among
from transduce.serve.limits import Refusal
from transduce.serve.markup import Markup
from transduce.serve.messages import (
    DetectedLanguage,
    DetectRequest,
    LanguageMessage,
    LibreTranslateRequest,
    LibreTranslateResponse,
    Settings,
    Status,
)
from transduce.serve.reading import as_json, body_schema, read_json, validated
from transduce.serve.service import Service, search_options
from transduce.text.language_names import language_name
from transduce.translation import Translation, joined

__all__ = ["libretranslate"]

FORM = "application/x-www-form-urlencoded"
Asked = TypeVar("Asked", bound=BaseModel)


def libretranslate(service: Service) -> APIRouter:
    """The routes."""
    router = APIRouter(tags=["LibreTranslate"])
    models, limits = service.models, service.limits

    @router.post(
        "/translate",
        response_model=LibreTranslateResponse,
        openapi_extra=body_schema(LibreTranslateRequest, models, FORM),
    )
    async def translate(request: Request) -> Response:
        """Translate a text or a list of texts."""
        asked = await _read(request, LibreTranslateRequest)
        service.admit(request, asked.api_key)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        limits.check_texts(texts)
        source: str | None = asked.source
        guesses: list[Guess] = []
        if source == "auto":
            guesses = await asyncio.to_thread(_guesses, texts, models.sources)
            source = guesses[0].language if guesses else None
        model, target = models.choose(None, source, asked.target)
        options = search_options(asked.alternatives + 1) | {"glossary": asked.glossary}
        if asked.format == "html":
            pages = [Markup(text) for text in texts]
            parts = [part for page in pages for part in page.texts]
            found = await service.translate(request, model, target, parts, **options)
            translations = _put_back(pages, found)
        else:
            translations = await service.translate(request, model, target, texts, **options)
        confident = model.translator.bundle.config.confidence is not None
        return as_json(_answered(translations, guesses, asked, confident))

    @router.get("/languages", response_model=list[LanguageMessage])
    async def languages() -> list[dict[str, Any]]:
        """The languages to translate from, and for each those to translate into."""
        return [
            {"code": code, "name": language_name(code), "targets": models.targets_of(code)} for code in models.sources
        ]

    @router.post(
        "/detect", response_model=list[DetectedLanguage], openapi_extra=body_schema(DetectRequest, models, FORM)
    )
    async def detect_language(request: Request) -> list[dict[str, Any]]:
        """Which language a text is in; an empty list where there is nothing to tell by."""
        asked = await _read(request, DetectRequest)
        service.admit(request, asked.api_key)
        limits.check_texts([asked.q])
        return [guess._asdict() for guess in await asyncio.to_thread(detect, asked.q)]

    @router.get("/frontend/settings", response_model=Settings)
    async def settings() -> dict[str, Any]:
        """What a page needs to know before it asks."""
        source, target = (models.sources or [""])[0], (models.targets or [""])[0]
        return {
            "charLimit": limits.characters,
            "batchLimit": limits.texts,
            "apiKeys": service.keys is not None,
            "keyRequired": service.keys is not None,
            "suggestions": False,
            "filesTranslation": False,
            "supportedFilesFormat": [],
            "frontendTimeout": 500,
            "language": {
                "source": {"code": source, "name": language_name(source)},
                "target": {"code": target, "name": language_name(target)},
            },
        }

    @router.get("/health", response_model=Status)
    async def health() -> dict[str, str]:
        """Whether the service is there."""
        return {"status": "ok"}

    return router


def _guesses(texts: list[str], languages: list[str]) -> list[Guess]:
    """The language of all texts together: they go to one model."""
    if not languages:
        return []
    return [detect_among(" ".join(texts), languages)] * len(texts)


def _put_back(pages: list[Markup], found: list[Translation]) -> list[Translation]:
    """Each page with its texts translated: the best ways together, then the second best ways together, and so on."""
    texts, translations = iter(found), []
    for page in pages:
        inside = [next(texts) for _ in page.texts]
        ways = joined([each.alternatives for each in inside], page.joined)
        flags = [flag for each in inside for flag in each.warnings]
        translations.append(Translation(ways[0].text, ways[0].score, ways, ways[0].confidence, flags))
    return translations


def _answered(
    translations: list[Translation], guesses: list[Guess], asked: LibreTranslateRequest, confident: bool
) -> dict[str, Any]:
    """Lists where a list was asked, single values where a text was."""
    answer: dict[str, Any] = {"translatedText": [each.text for each in translations]}
    if asked.alternatives:
        further = slice(1, asked.alternatives + 1)
        answer["alternatives"] = [[way.text for way in each.alternatives[further]] for each in translations]
    if any(each.warnings for each in translations):
        answer["warnings"] = [[asdict(flag) for flag in each.warnings] for each in translations]
    if confident:
        answer["confidence"] = [each.confidence for each in translations]
    if guesses:
        answer["detectedLanguage"] = [guess._asdict() for guess in guesses]
    return {name: values[0] for name, values in answer.items()} if isinstance(asked.q, str) else answer


async def _read(request: Request, kind: type[Asked]) -> Asked:
    """What is asked, as JSON or as a form."""
    media = request.headers.get("content-type", "").partition(";")[0].strip().lower()
    if media in ("application/json", ""):
        return validated(kind, await read_json(request), strict=True)
    if media == FORM:
        try:
            pairs = parse_qsl((await request.body()).decode(), keep_blank_values=True, errors="strict")
        except UnicodeDecodeError as error:
            raise Refusal(400, "request", "The form is not UTF-8.") from error
    elif media == "multipart/form-data":
        form = await request.form(max_files=0, max_part_size=1 << 20)
        pairs = [(name, value) for name, value in form.multi_items() if isinstance(value, str)]
    else:
        raise Refusal(415, "request", f"Send application/json or {FORM}.")
    values: dict[str, Any] = {}
    for name, value in pairs:
        # A text that comes several times is a list of texts.
        values[name] = value if name not in values else [*_listed(values[name]), value]
    if isinstance(terms := values.get("glossary"), str):
        with suppress(ValueError, RecursionError):  # what is no JSON is refused as what it is
            values["glossary"] = json.loads(terms)
    return validated(kind, values, strict=False)


def _listed(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [value]
