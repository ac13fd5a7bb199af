"""Our own API: everything that the translator can tell."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from transduce.attention_lens.alignment import Link
from transduce.serve.limits import Refusal
from transduce.serve.messages import (
    LOOKED_AT,
    LookRequest,
    LookResponse,
    ModelList,
    Status,
    TranslateRequest,
    TranslateResponse,
)
from transduce.serve.metrics import CONTENT_TYPE
from transduce.serve.reading import as_json, body_schema, read_json, validated
from transduce.serve.service import Service, search_options
from transduce.translator import Alternative, Translation

__all__ = ["own_api"]


def own_api(service: Service) -> APIRouter:
    """The routes."""
    router = APIRouter()

    @router.get("/v1/models", response_model=ModelList, tags=["transduce"])
    async def models() -> dict[str, Any]:
        """The models, with their cards and scores."""
        return {"models": [model.description for model in service.models]}

    @router.post(
        "/v1/translate",
        response_model=TranslateResponse,
        tags=["transduce"],
        openapi_extra=body_schema(TranslateRequest, service.models),
    )
    async def translate(request: Request) -> Response:
        """Translate: with the n best ways, scores, confidence, a given beginning, and which word comes from which."""
        asked = validated(TranslateRequest, await read_json(request), strict=True)
        service.admit(request, asked.api_key)
        model, target = service.models.choose(asked.model, asked.source, asked.target)
        texts = [asked.q] if isinstance(asked.q, str) else asked.q
        service.limits.check_texts(texts)
        links: list[list[Link]] | None = None
        if asked.alignment:
            translations, links = await service.align(request, model, target, texts, **_options(asked))
        else:
            translations = await service.translate(request, model, target, texts, **_options(asked))
        messages: list[dict[str, Any]] = [
            _way(each)
            | {
                "alternatives": [_way(one) for one in each.alternatives],
                "warnings": [asdict(flag) for flag in each.warnings],
            }
            for each in translations
        ]
        for message, mine in zip(messages, links or [], strict=False):
            message["alignment"] = [link._asdict() for link in mine]
        return as_json({"model": model.name, "target": target, "translations": messages})

    @router.post(
        "/v1/attention",
        response_model=LookResponse,
        tags=["transduce"],
        openapi_extra=body_schema(LookRequest, service.models),
    )
    async def attention(request: Request) -> Response:
        """Where the model looks: every layer and head, and how probable each token was."""
        asked = validated(LookRequest, await read_json(request), strict=True)
        service.admit(request, asked.api_key)
        model, target = service.models.choose(asked.model, None, asked.target)
        for text in (asked.q, asked.translation or ""):
            if len(text) > LOOKED_AT:
                raise Refusal(413, "characters", f"A sentence to look into may have {LOOKED_AT} characters.")

        def looked() -> Response:
            maps = model.translator.attention(asked.q, asked.translation, model.to(target))
            return as_json(maps.as_json(asked.encoding) | {"model": model.name})

        answer: Response = await service.look(request, looked)
        return answer

    @router.get("/health/live", response_model=Status, tags=["service"])
    async def live() -> dict[str, str]:
        """Whether the process is well; if not, start it anew."""
        return {"status": "ok"}

    @router.get("/health/ready", response_model=Status, tags=["service"])
    async def ready() -> dict[str, str]:
        """Whether to send requests here: not when it has been told to stop, nor when its queue is full."""
        service.check_ready()
        return {"status": "ok"}

    @router.get("/metrics", response_class=Response, responses={200: {"content": {"text/plain": {}}}}, tags=["service"])
    async def metrics() -> Response:
        """Figures for Prometheus."""
        return Response(service.metrics.text(), media_type=CONTENT_TYPE)

    return router


def _way(each: Translation | Alternative) -> dict[str, Any]:
    return {"text": each.text, "score": each.score, "confidence": each.confidence}


def _options(asked: TranslateRequest) -> dict[str, Any]:
    options = search_options(asked.n_best, asked.beam)
    if asked.prefix:
        options["prefix"] = asked.prefix
    mbr = asked.mbr if options.get("beam") != 1 else None  # one hypothesis agrees with itself
    return options | {"glossary": asked.glossary, "guard": asked.guard, "mbr": mbr}
