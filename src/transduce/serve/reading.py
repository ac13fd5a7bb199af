"""Requests made sense of, and answers; what makes no sense is refused in words."""

from __future__ import annotations

import json
from typing import Any, TypeVar

from fastapi import Request, Response
from pydantic import BaseModel, ValidationError

from transduce.errors import nearest
from transduce.serve.limits import Refusal
from transduce.serve.messages import LibreTranslateRequest
from transduce.serve.models import ServedModels

__all__ = ["as_json", "body_schema", "read_json", "validated"]

Asked = TypeVar("Asked", bound=BaseModel)


async def read_json(request: Request) -> Any:
    """The JSON of a request's body."""
    try:
        return json.loads((await request.body()).decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        raise Refusal(400, "request", "The request is not UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise Refusal(400, "request", "The request is not JSON.") from error


def as_json(values: Any) -> Response:
    """An answer; that it is as the OpenAPI document says is for tests to show, and not checked with each."""
    body = json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace")
    return Response(body, media_type="application/json")


def validated(kind: type[Asked], values: Any, strict: bool) -> Asked:
    """The request that some values are; refused with the first thing that is wrong with them."""
    try:
        asked = kind.model_validate(values, strict=strict)
    except ValidationError as error:
        raise Refusal(400, "request", _worded(kind, error)) from error
    for name, text in asked:
        if any(not _is_unicode(each) for each in _texts_of(text)):
            raise Refusal(400, "request", f"Invalid request: {name} has halves of characters (lone surrogates).")
    return asked


def body_schema(kind: type[BaseModel], models: ServedModels, *media: str) -> dict[str, Any]:
    """The body of a route that reads it itself, for the OpenAPI document; models and languages are those there are."""
    schema = kind.model_json_schema()
    choices = {
        "model": [model.name for model in models],
        "source": [*models.sources, *(["auto"] if kind is LibreTranslateRequest else [])],
        "target": models.targets,
    }
    for name, values in choices.items():
        field = schema["properties"].get(name)
        if field and values:
            field.get("anyOf", [field])[0]["enum"] = values
    content = {each: {"schema": schema} for each in ("application/json", *media)}
    return {"requestBody": {"required": True, "content": content}}


def _worded(kind: type[BaseModel], error: ValidationError) -> str:
    first = error.errors(include_url=False, include_context=False)[0]
    name = str(first["loc"][0]) if first["loc"] else "the request"
    if first["type"] == "missing":
        return f"Invalid request: missing {name} parameter"  # LibreTranslate's own words, which clients look for
    if first["type"] == "extra_forbidden":
        return f"Invalid request: {name[:40]!r} is not known. {nearest(name[:40], kind.model_fields)}"
    if first["type"] == "string_pattern_mismatch":
        return f"Invalid request: {name} has no letter or digit{', so there is nothing to look at' * (name == 'q')}."
    message = first["msg"][0].lower() + first["msg"][1:]
    return f"Invalid request: {name}: {message}."


def _texts_of(value: Any) -> list[Any]:
    if isinstance(value, dict):
        return [*value, *value.values()]
    return value if isinstance(value, list) else [value]


def _is_unicode(value: Any) -> bool:
    try:
        if isinstance(value, str):
            value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _refuse_constant(name: str) -> float:
    raise ValueError(f"{name} is no JSON")
