"""Bodies as values: JSON, YAML or protobuf, of the kind that is expected."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from navarch.cluster.server.objects.types import ResourceType
from navarch.cluster.server.wire import causes
from navarch.cluster.server.wire.budget import LIMITS, bounded_json, current_budget
from navarch.cluster.server.wire.go_text import go_kind
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request, invalid

__all__ = [
    "LIMIT_BYTES",
    "decode_json",
    "decode_kind",
    "decode_of",
    "decode_options",
    "is_json",
    "refuse_other_kind",
    "refuse_other_version",
    "refuse_too_large",
]

LIMIT_BYTES: Final = LIMITS.body_bytes
_JSON: Final = "application/json"
_YAML: Final = "application/yaml"
_APPLY: Final = "application/apply-patch+yaml"
_PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_META: Final = "meta.k8s.io/v1"
_SCHEME: Final = "pkg/runtime/scheme.go:111"
_SHOWN_BYTES: Final = 30
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)


class _UnreadableError(StatusError):
    """A body that is not what its media type says; `kind` and `version` are what it says of itself, if it does."""

    def __init__(self, why: str, version: str = "", kind: str = "") -> None:
        super().__init__(400, "BadRequest", why)
        self.version = version
        self.kind = kind

    def instead_of(self, expected: str, body: bytes) -> StatusError:
        """The refusal of an object that should have been of the expected kind."""
        if self.kind:
            return bad_request(
                f'{self.kind} in version "{self.version}" cannot be handled as a {expected}: {self.message}'
            )
        return bad_request(
            f"the object provided is unrecognized (must be of type {expected}): {self.message} ({_summary(body)})"
        )


def refuse_too_large(body: bytes) -> None:
    """413 beyond Kubernetes' own limit."""
    current_budget().charge_body(len(body))


def is_json(media_type: str) -> bool:
    """Whether a body is JSON, which it is also if nobody says what it is."""
    return _plain(media_type) in {_JSON, ""}


def is_yaml(media_type: str) -> bool:
    """Whether a body is YAML."""
    return _plain(media_type) == _YAML


def decode_of(body: bytes, media_type: str, resource: ResourceType, *, is_strict: bool = True) -> Json:
    """The object of a resource that a body is; refuses with 400 or 415 what is no such object, or none at all.

    One of a custom kind may be of another kind; see `refuse_other_kind`. `is_strict`: its fields will be checked.
    """
    if resource.is_custom and _plain(media_type) == _PROTOBUF:
        raise _unsupported(_JSON, _YAML)
    try:
        value = decode_json(body, media_type, resource.api_version, resource.kind)
        return _identified(value, resource, body if is_json(media_type) else b"", is_strict=is_strict)
    except _UnreadableError as error:
        raise error.instead_of(resource.kind, body) from None


def decode_kind(body: bytes, media_type: str, kind: str) -> Json:
    """The object that a body is, which should be of that kind; refuses with 400 or 415 what is none."""
    try:
        return _typed(decode_json(body, media_type))
    except _UnreadableError as error:
        raise error.instead_of(kind, body) from None


def decode_options(body: bytes, media_type: str, kind: str) -> Json:
    """The options of a request, of that kind in whatever group; refuses with 400 or 415."""
    value = _typed(decode_json(body, media_type, _META, kind))
    if (found := value.get("kind") or kind) != kind:
        version = value.get("apiVersion") or _META
        raise bad_request(f'no kind "{found}" is registered for version "{version}" in scheme "{_SCHEME}"')
    return value


def decode_json(body: bytes, media_type: str = _JSON, api_version: str = "", kind: str = "") -> Any:
    """The value that a body is, as JSON; refuses with 400 or 415.

    Protobuf that does not say of which kind it is, is of the one that is given.
    """
    refuse_too_large(body)
    written = _plain(media_type)
    if written in {_JSON, ""}:
        return _from_json(body)
    if written in {_YAML, _APPLY}:
        return _from_yaml(body)
    if written == _PROTOBUF:
        return _from_protobuf(body, api_version, kind)
    raise _unsupported(_JSON, _YAML, _PROTOBUF)


def _plain(media_type: str) -> str:
    return media_type.split(";", maxsplit=1)[0].strip().lower()


def _unsupported(*accepted: str) -> StatusError:
    why = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", why)


def _from_json(body: bytes) -> Any:
    try:
        return bounded_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        from navarch.cluster.server.wire.json_errors import json_fault  # noqa: PLC0415 - most bodies have none

        raise _UnreadableError(f"couldn't get version/kind; json parse error: {json_fault(body) or error}") from None


def _from_yaml(body: bytes) -> Any:
    from navarch.cluster.server.objects.fields import applied_object  # noqa: PLC0415 - most bodies are JSON

    return applied_object(body)


def _from_protobuf(body: bytes, api_version: str, kind: str) -> Json:
    from navarch.cluster.server.wire.protobuf import MalformedError, opened  # noqa: PLC0415 - only Go clients send it

    found_version, found_kind = "", ""
    try:
        envelope = opened(body)
        found_version, found_kind = envelope.api_version or api_version, envelope.kind or kind
        return envelope.read(found_version, found_kind)
    except MalformedError as error:
        raise _UnreadableError(str(error), found_version.rpartition("/")[2], found_kind) from None


def _identified(given: Any, resource: ResourceType, body: bytes, *, is_strict: bool) -> Json:
    """The object, which says of which kind it is; refused if that is another one."""
    value = _typed(given)
    if resource.is_custom:
        _check_custom(value, resource, body, is_strict=is_strict)
    else:
        _check_built_in(value, resource)
    return value


def _typed(value: Any) -> Json:
    """The object, which may say of which kind it is, in texts."""
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise _no_type(f"{go_kind(value)} into Go value of type {_TYPE_META}")
    for name in ("apiVersion", "kind"):
        if not isinstance(value.get(name) or "", str):
            raise _no_type(f"{go_kind(value[name])} into Go struct field .{name} of type string")
    return value


def _no_type(what: str) -> StatusError:
    return _UnreadableError(f"couldn't get version/kind; json parse error: json: cannot unmarshal {what}")


def _check_custom(value: Json, resource: ResourceType, body: bytes, *, is_strict: bool) -> None:
    """A custom object must say of which kind it is."""
    found_version, found_kind = value.get("apiVersion") or "", value.get("kind")
    if not found_kind:
        why = f"Object 'Kind' is missing in '{(body or msgspec.json.encode(value)).decode()}'"
        raise _UnreadableError(why) if is_strict else _UnreadableError(why, resource.version, resource.kind)
    if faults := resource.schema.faults(value):
        raise _UnreadableError(faults[0].message, found_version.rpartition("/")[2], found_kind)


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
        cause = causes.invalid("kind", found_kind, f"must be {resource.kind}")
        raise invalid(resource.group, str(found_kind), name, [cause])


def _check_built_in(value: Json, resource: ResourceType) -> None:
    """One that does not say of which kind it is, is of the one that is expected."""
    found_version = value["apiVersion"] = value.get("apiVersion") or resource.api_version
    found_kind = value["kind"] = value.get("kind") or resource.kind
    if (found_version, found_kind) == (resource.api_version, resource.kind):
        return
    from navarch.cluster.server.wire.protobuf import message_of  # noqa: PLC0415 - most objects are of the right kind

    version = found_version.rpartition("/")[2]
    why = f'no kind "{found_kind}" is registered for version "{found_version}" in scheme "{_SCHEME}"'
    if message_of(found_version, found_kind):
        internal = resource.group.split(".", maxsplit=1)[0].replace("events", "core") or "core"
        why = f"converting ({version}.{found_kind}) to ({internal}.{resource.kind}): unknown conversion"
    raise _UnreadableError(why, version, found_kind)


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    shown = body[:_SHOWN_BYTES]
    text = shown.decode(errors="replace") if body.startswith(b"{") else shown.hex()
    return f"{text} ..." if len(body) > _SHOWN_BYTES else text
