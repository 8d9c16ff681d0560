"""Bodies of requests: what is in them, and how strict the server is with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from navarch.api.json_patch import copy_json
from navarch.cluster.server.decoding import (
    LIMIT_BYTES,
    decode_json,
    decode_of,
    is_json,
    is_yaml,
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
    is_joined = bool(doubled) and is_json(media_type) and not resource.is_custom
    if is_joined:
        value = _together(value, request.body)
    refuse_unfit(resource, value)
    is_such = (value.get("apiVersion"), value["kind"]) == (resource.api_version, resource.kind)
    schema = resource.schema if is_such else None
    found = [*doubled, *(() if is_such else _unknown_of_all(resource, value))]
    ordered = partial(_as_read, request.body) if is_joined else None
    warnings += strict_faults(request, value, schema, _refusal(resource, value["kind"]), found=found, ordered=ordered)
    refuse_other_version(value, resource)
    return value


def _unknown_of_all(resource: ResourceType, value: Json) -> list[str]:
    """What is unknown of an object of another kind: all have the same metadata."""
    unknown = resource.schema.unknown_fields(copy_json(value))
    return [f'unknown field "{path}"' for path in unknown if path.startswith("metadata.")]


def _refusal(resource: ResourceType, kind: str) -> Callable[[str], Refusal]:
    return lambda why: bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}')


def refuse_unfit(resource: ResourceType, value: Json) -> None:
    """400 for what could not be decoded into the types of the kind."""
    if faults := resource.schema.faults(value):
        raise _refusal(resource, resource.kind)(faults[0].message)


def strict_faults(
    request: ApiRequest,
    value: Json,
    schema: Schema | None,
    refused: Callable[[str], Refusal],
    *,
    found: Iterable[str] = (),
    ordered: Callable[[list[str]], list[str]] | None = None,
) -> list[str]:
    """Drops unknown fields; as warnings with `fieldValidation=Warn`, as a refusal with `Strict`, together with what
    else was `found`. `refused` makes the refusal of the reason; `ordered` tells of both, given the unknown paths.
    """
    validation = request.parameter("fieldValidation") or "Warn"
    unknown = schema.unknown_fields(value) if schema else []
    if validation == "Ignore":
        return []
    odd = [*found, *(f'unknown field "{path}"' for path in unknown)] if ordered is None else ordered([*unknown])
    if odd and validation == "Strict":
        raise refused(f"strict decoding error: {', '.join(odd)}")
    return odd


class _Pairs(list[tuple[str, Any]]):
    """An object of a JSON text, with all that is in it."""


def _as_read(body: bytes, unknown: list[str]) -> list[str]:
    """What is unknown and what comes twice, in the order in which Go comes upon it; it does not look into the unknown."""
    return [*dict.fromkeys(_odd_in(json.loads(body, object_pairs_hook=_Pairs), "", frozenset(unknown)))]


def _odd_in(value: Any, path: str, unknown: frozenset[str]) -> Iterator[str]:
    if isinstance(value, _Pairs):
        seen: set[str] = set()
        for name, item in value:
            place = _joined(path, name)
            if place in unknown:
                yield f'unknown field "{place}"'
                continue
            if name in seen:
                yield f'duplicate field "{place}"'
            seen.add(name)
            yield from _odd_in(item, place, unknown)
    elif isinstance(value, list):
        for index, item in enumerate(value):
            yield from _odd_in(item, f"{path}[{index}]", unknown)


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
    if is_yaml(media_type):
        return _repeated_in_yaml(request)
    return [f'duplicate field "{path}"' for path in duplicates_in(request, media_type)]


def _repeated_in_yaml(request: ApiRequest) -> list[str]:
    """One by one as warnings, all at once in a refusal."""
    from navarch.cluster.server.fields.yaml_bodies import repeated_keys  # noqa: PLC0415 - most bodies are JSON

    said = repeated_keys(request.body)
    if said and request.parameter("fieldValidation") == "Strict":
        return ["yaml: unmarshal errors:" + "".join(f"\n  {each}" for each in said)]
    return said


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
