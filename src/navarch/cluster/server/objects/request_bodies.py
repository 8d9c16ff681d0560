"""Decodes the body of a request into an object of the expected kind, with field validation."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import msgspec

from navarch.api.json_patch import copy_json
from navarch.cluster.server.objects.types import KindSchema, ResourceType
from navarch.cluster.server.wire import status_causes
from navarch.cluster.server.wire.bodies import (
    JSON,
    PROTOBUF,
    SCHEME,
    YAML,
    MalformedBodyError,
    decode_json,
    is_json,
    is_yaml,
    plain_media_type,
    typed_object,
    unsupported_media_type,
)
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.duplicate_fields import (
    MOST_FAULTS,
    duplicate_paths,
    faults_in_order,
    merged_duplicates,
)
from navarch.cluster.server.wire.request import ApiRequest, Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, invalid


def decode_of(body: bytes, media_type: str, resource: ResourceType, *, is_strict: bool = True) -> Json:
    """The object of a resource that a body is; refuses with 400 or 415 what is no such object, or none at all.

    One of a custom kind may be of another kind; see `refuse_other_kind`. `is_strict`: its fields will be checked.
    """
    if resource.is_custom and plain_media_type(media_type) == PROTOBUF:
        raise unsupported_media_type(JSON, YAML)
    try:
        value = decode_json(body, media_type, resource.api_version, resource.kind)
        return _identified(value, resource, body if is_json(media_type) else b"", is_strict=is_strict)
    except MalformedBodyError as error:
        raise error.instead_of(resource.kind, body) from None


def _identified(given: Any, resource: ResourceType, body: bytes, *, is_strict: bool) -> Json:
    """The object, which says of which kind it is; refused if that is another one."""
    value = typed_object(given)
    if resource.is_custom:
        _check_custom(value, resource, body, is_strict=is_strict)
    else:
        _check_built_in(value, resource)
    return value


def _check_custom(value: Json, resource: ResourceType, body: bytes, *, is_strict: bool) -> None:
    """A custom object must say of which kind it is."""
    found_version, found_kind = value.get("apiVersion") or "", value.get("kind")
    if not found_kind:
        why = f"Object 'Kind' is missing in '{(body or msgspec.json.encode(value)).decode()}'"
        raise MalformedBodyError(why) if is_strict else MalformedBodyError(why, resource.version, resource.kind)
    if faults := resource.schema.faults(value):
        raise MalformedBodyError(faults[0].message, found_version.rpartition("/")[2], found_kind)


def refuse_other_version(value: Json, resource: ResourceType) -> None:
    """400 for an object that says that it is of another version; a built-in one was refused before."""
    found_version = value.get("apiVersion") or ""
    if found_version != resource.api_version:
        raise bad_request(
            f"the API version in the data ({found_version}) does not match the expected API version "
            f"({resource.api_version})"
        )


def refuse_other_kind(value: Json, resource: ResourceType) -> None:
    """422 for an object that says that it is of another kind; a built-in one was refused before."""
    found_kind = value.get("kind")
    if found_kind != resource.kind:
        metadata = value.get("metadata")
        name = metadata.get("name", "") if isinstance(metadata, dict) else ""
        cause = status_causes.invalid("kind", found_kind, f"must be {resource.kind}")
        raise invalid(resource.group, str(found_kind), name, [cause])


def _check_built_in(value: Json, resource: ResourceType) -> None:
    """One that does not say of which kind it is, is of the one that is expected."""
    found_version = value["apiVersion"] = value.get("apiVersion") or resource.api_version
    found_kind = value["kind"] = value.get("kind") or resource.kind
    if (found_version, found_kind) == (resource.api_version, resource.kind):
        return
    from navarch.cluster.server.wire.protobuf import message_of  # noqa: PLC0415 - most objects are of the right kind

    version = found_version.rpartition("/")[2]
    why = f'no kind "{found_kind}" is registered for version "{found_version}" in scheme "{SCHEME}"'
    if message_of(found_version, found_kind):
        internal = resource.group.split(".", maxsplit=1)[0].replace("events", "core") or "core"
        why = f"converting ({version}.{found_kind}) to ({internal}.{resource.kind}): unknown conversion"
    raise MalformedBodyError(why, version, found_kind)


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
        current_budget().charge_value(value)
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
    schema: KindSchema | None,
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
