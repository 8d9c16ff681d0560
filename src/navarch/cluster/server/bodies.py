"""Bodies of requests: what they are written in, how strict the server is with them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from typing import Any

import msgspec

from navarch.cluster.server.refusal import Refusal, bad_request
from navarch.cluster.server.request import ApiRequest, Json
from navarch.cluster.server.types import ResourceType

__all__ = ["LIMIT_BYTES", "decode_json", "decode_object", "refuse_too_large", "strict_faults"]

LIMIT_BYTES = 3 * 1024 * 1024
_VALIDATIONS = ("Ignore", "Warn", "Strict")


def refuse_too_large(body: bytes) -> None:
    """413 beyond Kubernetes' own limit."""
    if len(body) > LIMIT_BYTES:
        raise Refusal(413, "RequestEntityTooLarge", f"Request entity too large: limit is {LIMIT_BYTES}")


def decode_json(body: bytes, media_type: str = "application/json") -> Any:
    """The value that a body is; refuses with 400 or 415."""
    refuse_too_large(body)
    kind = media_type.split(";", maxsplit=1)[0].strip()
    if kind in {"application/json", ""}:
        return _from_json(body)
    if kind in {"application/yaml", "application/apply-patch+yaml"}:
        return _from_yaml(body)
    raise Refusal(
        415,
        "UnsupportedMediaType",
        "the body of the request was in an unknown format - accepted media types include: "
        "application/json, application/yaml, application/vnd.kubernetes.protobuf",
    )


def _from_json(body: bytes) -> Any:
    try:
        return msgspec.json.decode(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise bad_request(f"couldn't get version/kind; json parse error: {error}") from None


def _from_yaml(body: bytes) -> Any:
    from navarch.cluster.server.fields import applied_object  # noqa: PLC0415 - most bodies are JSON

    return applied_object(body)


def decode_object(request: ApiRequest, resource: ResourceType, *, kind: str = "") -> tuple[Json, list[str]]:
    """The object in the body, checked against its schema; and warnings about what the schema does not know.

    `kind` is that of a subresource, where it differs. Refuses with 400 what is no such object, and what field validation
    does not let pass.
    """
    media_type = request.headers.get("content-type", "")
    value = decode_json(request.body, media_type)
    if not isinstance(value, dict):
        raise bad_request("couldn't get version/kind; json parse error: expected an object")
    _check_type(value, resource, kind)
    faults = strict_faults(request, value, resource, duplicates=_duplicates(request, media_type))
    return value, faults


def _check_type(value: Json, resource: ResourceType, kind: str) -> None:
    expected = kind or resource.kind
    found_version, found_kind = value.get("apiVersion"), value.get("kind")
    if not found_kind:
        raise bad_request(f"Object 'Kind' is missing in '{_shown(value)}'")
    if not found_version:
        raise bad_request(f"Object 'apiVersion' is missing in '{_shown(value)}'")
    if (found_version, found_kind) != (resource.api_version, expected) and not kind:
        raise bad_request(
            f"the API version in the data ({found_version}) does not match the expected API version "
            f"({resource.api_version})"
            if found_kind == expected
            else f"{found_kind} in version {str(found_version).rpartition('/')[2]!r} cannot be handled as a {expected}: "
            f"no kind {found_kind!r} is registered"
        )


def _shown(value: Json) -> str:
    return msgspec.json.encode(value)[:256].decode(errors="replace")


def strict_faults(
    request: ApiRequest,
    value: Json,
    resource: ResourceType,
    *,
    duplicates: Iterable[str] = (),
    refused: Callable[[str], Refusal] | None = None,
) -> list[str]:
    """Drops unknown fields; as warnings with `fieldValidation=Warn`, as a refusal with `Strict`.

    `refused` makes the refusal of the reason; by default it is a 400 about the body.
    """
    validation = request.parameter("fieldValidation") or "Warn"
    if validation not in _VALIDATIONS:
        raise Refusal(
            422,
            "Invalid",
            f'fieldValidation: Unsupported value: "{validation}": supported values: "Ignore", "Warn", "Strict"',
        )
    unknown = [f'unknown field "{path}"' for path in resource.schema.unknown_fields(value)]
    if validation == "Ignore":
        return []
    found = [*(f'duplicate field "{path}"' for path in duplicates), *unknown]
    if found and validation == "Strict":
        why = f"strict decoding error: {', '.join(found)}"
        raise (
            refused(why)
            if refused
            else bad_request(
                f'{resource.kind} in version "{resource.version}" cannot be handled as a {resource.kind}: {why}'
            )
        )
    return found


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


def _duplicates(request: ApiRequest, media_type: str) -> list[str]:
    """The paths of what is there more than once; not looked for where nobody wants to know."""
    if request.parameter("fieldValidation") == "Ignore" or "yaml" in media_type:
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
