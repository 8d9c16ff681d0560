"""Bodies of requests: what is in them, and how strict the server is with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from navarch.cluster.server.decoding import LIMIT_BYTES, decode_json, decode_of, is_json, refuse_too_large
from navarch.cluster.server.refusal import Refusal, bad_request
from navarch.cluster.server.request import ApiRequest, Json
from navarch.cluster.server.types import ResourceType

__all__ = [
    "LIMIT_BYTES",
    "decode_json",
    "decode_object",
    "duplicates_in",
    "refuse_too_large",
    "refuse_unfit",
    "strict_faults",
]


def decode_object(request: ApiRequest, resource: ResourceType, *, kind: str = "") -> tuple[Json, list[str]]:
    """The object in the body, checked against its schema; and warnings about what the schema does not know.

    `kind` is that of a subresource, where it differs. Refuses with 400 what is no such object, and what field validation
    does not let pass.
    """
    media_type = request.headers.get("content-type", "")
    value = decode_of(request.body, media_type, resource, kind)
    if not kind:
        refuse_unfit(resource, value)
    doubled = [f'duplicate field "{path}"' for path in duplicates_in(request, media_type)]
    return value, strict_faults(request, value, resource, found=doubled)


def refuse_unfit(resource: ResourceType, value: Json) -> None:
    """400 for what could not be decoded into the types of the kind."""
    if faults := resource.schema.faults(value):
        kind = resource.kind
        raise bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {faults[0].message}')


def strict_faults(
    request: ApiRequest,
    value: Json,
    resource: ResourceType,
    *,
    found: Iterable[str] = (),
    refused: Callable[[str], Refusal] | None = None,
) -> list[str]:
    """Drops unknown fields; as warnings with `fieldValidation=Warn`, as a refusal with `Strict`, together with what
    else was `found`.

    `refused` makes the refusal of the reason; by default it is a 400 about the body.
    """
    validation = request.parameter("fieldValidation") or "Warn"
    unknown = [f'unknown field "{path}"' for path in resource.schema.unknown_fields(value)]
    if validation == "Ignore":
        return []
    odd = [*found, *unknown]
    if odd and validation == "Strict":
        why = f"strict decoding error: {', '.join(odd)}"
        raise (
            refused(why)
            if refused
            else bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
            )
        )
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
    repeating.repeated = tuple(name for name in value for _ in range(names.count(name) - 1))
    return repeating


def duplicates_in(request: ApiRequest, media_type: str = "application/json") -> list[str]:
    """The paths of what is there more than once; not looked for where nobody wants to know.

    Most bodies are written as their value is written again: nothing of them got lost.
    """
    if request.parameter("fieldValidation") == "Ignore" or not is_json(media_type):
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
