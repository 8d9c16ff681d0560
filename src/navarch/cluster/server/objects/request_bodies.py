"""Bodies of requests: what is in them, and how strict the server is with them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial

from navarch.api.json_patch import copy_json
from navarch.cluster.server.objects.decoding import (
    LIMIT_BYTES,
    decode_json,
    decode_of,
    is_json,
    is_yaml,
    refuse_other_kind,
    refuse_other_version,
    refuse_too_large,
)
from navarch.cluster.server.objects.types import ResourceType, Schema
from navarch.cluster.server.wire.duplicate_fields import (
    MOST_FAULTS,
    duplicate_paths,
    faults_in_order,
    merged_duplicates,
)
from navarch.cluster.server.wire.request import ApiRequest, Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request

__all__ = [
    "LIMIT_BYTES",
    "decode_json",
    "decode_object",
    "duplicate_faults",
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
        value = {**merged_duplicates(request.body), **{name: value[name] for name in ("apiVersion", "kind")}}
    refuse_unfit(resource, value)
    is_such = (value.get("apiVersion"), value["kind"]) == (resource.api_version, resource.kind)
    schema = resource.schema if is_such else None
    found = [*doubled, *(() if is_such else _unknown_of_all(resource, value))]
    ordered = partial(faults_in_order, request.body) if is_joined else None
    warnings += strict_faults(request, value, schema, _refusal(resource, value["kind"]), found=found, ordered=ordered)
    refuse_other_version(value, resource)
    return value


def _unknown_of_all(resource: ResourceType, value: Json) -> list[str]:
    """What is unknown of an object of another kind: all have the same metadata."""
    unknown = resource.schema.unknown_fields(copy_json(value))
    return [f'unknown field "{path}"' for path in unknown if path.startswith("metadata.")]


def _refusal(resource: ResourceType, kind: str) -> Callable[[str], StatusError]:
    return lambda why: bad_request(f'{kind} in version "{resource.version}" cannot be handled as a {kind}: {why}')


def refuse_unfit(resource: ResourceType, value: Json) -> None:
    """400 for what could not be decoded into the types of the kind."""
    if faults := resource.schema.faults(value):
        raise _refusal(resource, resource.kind)(faults[0].message)


def strict_faults(
    request: ApiRequest,
    value: Json,
    schema: Schema | None,
    refused: Callable[[str], StatusError],
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
    odd = odd[:MOST_FAULTS]
    if odd and validation == "Strict":
        raise refused(f"strict decoding error: {', '.join(odd)}")
    return odd


def duplicate_faults(request: ApiRequest, media_type: str = "application/json") -> list[str]:
    """What is there more than once, in the words of field validation."""
    if is_yaml(media_type):
        return _repeated_in_yaml(request)
    return [f'duplicate field "{path}"' for path in duplicate_paths(request.body)] if is_json(media_type) else []


def _repeated_in_yaml(request: ApiRequest) -> list[str]:
    """One by one as warnings, all at once in a refusal."""
    from navarch.cluster.server.wire.yaml_bodies import repeated_keys  # noqa: PLC0415 - most bodies are JSON

    said = repeated_keys(request.body)
    if said and request.parameter("fieldValidation") == "Strict":
        return ["yaml: unmarshal errors:" + "".join(f"\n  {each}" for each in said)]
    return said
