"""Bodies of requests: what is in them, and how strict the server is with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from navarch.cluster.server.decoding import (
    LIMIT_BYTES,
    decode_json,
    decode_of,
    is_json,
    refuse_other_kind,
    refuse_other_version,
    refuse_too_large,
)
from navarch.cluster.server.refusal import Refusal, bad_request
from navarch.cluster.server.request import ApiRequest, Json
from navarch.cluster.server.types import ResourceType, Schema

__all__ = [
    "LIMIT_BYTES",
    "decode_json",
    "decode_object",
    "duplicate_faults",
    "duplicates_in",
    "refuse_other_kind",
    "refuse_too_large",
    "refuse_unfit",
    "strict_faults",
]


def decode_object(request: ApiRequest, resource: ResourceType, warnings: list[str]) -> Json:
    """The object in the body, checked against its schema; `warnings` are told what the schema does not know.

    Refuses with 400 what is no such object, and what field validation does not let pass; but see `refuse_other_kind`.
    """
    media_type = request.headers.get("content-type", "")
    is_strict = request.parameter("fieldValidation") != "Ignore"
    value = decode_of(request.body, media_type, resource, is_strict=is_strict)
    doubled = duplicate_faults(request, media_type)
    if doubled and not resource.is_custom:
        value = _together(value, request.body)
    refuse_unfit(resource, value)
    is_such = (value.get("apiVersion"), value["kind"]) == (resource.api_version, resource.kind)
    schema = resource.schema if is_such else None
    warnings += strict_faults(request, value, schema, _refusal(resource), found=doubled)
    refuse_other_version(value, resource)
    return value


def _refusal(resource: ResourceType) -> Callable[[str], Refusal]:
    kind = resource.kind
    return lambda why: bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}')


def refuse_unfit(resource: ResourceType, value: Json) -> None:
    """400 for what could not be decoded into the types of the kind."""
    if faults := resource.schema.faults(value):
        raise _refusal(resource)(faults[0].message)


def strict_faults(
    request: ApiRequest,
    value: Json,
    schema: Schema | None,
    refused: Callable[[str], Refusal],
    *,
    found: Iterable[str] = (),
) -> list[str]:
    """Drops unknown fields; as warnings with `fieldValidation=Warn`, as a refusal with `Strict`, together with what
    else was `found`. `refused` makes the refusal of the reason.
    """
    validation = request.parameter("fieldValidation") or "Warn"
    unknown = [f'unknown field "{path}"' for path in schema.unknown_fields(value)] if schema else []
    if validation == "Ignore":
        return []
    odd = [*found, *unknown]
    if odd and validation == "Strict":
        raise refused(f"strict decoding error: {', '.join(odd)}")
    return odd


class _Repeating(dict[str, Any]):
    """An object of a JSON text that has some names more than once."""

    repeated: tuple[str, ...] = ()


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    names = [name for name, _ in pairs]
    repeating = _Repeating(value)
    repeating.repeated = tuple(name for name in value if names.count(name) > 1)
    return repeating


def _together(value: Json, body: bytes) -> Json:
    """The value that Go reads from a text with names that come twice: it adds to the object that was there before."""
    return {**json.loads(body, object_pairs_hook=_merged), **{name: value[name] for name in ("apiVersion", "kind")}}


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for name, member in pairs:
        before = value.get(name)
        if isinstance(before, dict) and isinstance(member, dict):
            value[name] = _merged([*before.items(), *member.items()])
        else:
            value[name] = member
    return value


def duplicate_faults(request: ApiRequest, media_type: str = "application/json") -> list[str]:
    """What is there more than once, in the words of field validation."""
    return [f'duplicate field "{path}"' for path in duplicates_in(request, media_type)]


def duplicates_in(request: ApiRequest, media_type: str = "application/json") -> list[str]:
    """The paths of what is there more than once.

    Most bodies are written as their value is written again: nothing of them got lost.
    """
    if not is_json(media_type):
        return []
    if msgspec.json.encode(msgspec.json.decode(request.body)) == request.body.rstrip():
        return []
    return list(_repeated_paths(json.loads(request.body, object_pairs_hook=_object), ""))


def _repeated_paths(value: Any, path: str) -> Iterable[str]:
    if isinstance(value, list):
        for index, item in enumerate(value):
            yield from _repeated_paths(item, f"{path}[{index}]")
    elif isinstance(value, dict):
        if isinstance(value, _Repeating):
            yield from (_joined(path, name) for name in value.repeated)
        for name, item in value.items():
            if isinstance(item, (dict, list)):
                yield from _repeated_paths(item, _joined(path, name))


def _joined(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name
