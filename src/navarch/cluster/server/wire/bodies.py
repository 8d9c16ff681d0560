"""Decodes bodies of requests: JSON, YAML or protobuf to JSON values."""

from __future__ import annotations

import re
from typing import Any, Final

import msgspec

from navarch.cluster.server.wire.budget import LIMITS, bounded_json, current_budget
from navarch.cluster.server.wire.go_text import go_kind
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request

_SURROGATE: Final = re.compile(rb"[^\\](?:\\\\)*\\u[dD][89a-fA-F]").search
_NO_JSON: Final = "error decoding YAML: error converting YAML to JSON"
_MAP: Final = "Go value of type map[string]interface {}"
LIMIT_BYTES: Final = LIMITS.body_bytes
JSON: Final = "application/json"
YAML: Final = "application/yaml"
_APPLY: Final = "application/apply-patch+yaml"
PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
_META: Final = "meta.k8s.io/v1"
SCHEME: Final = "pkg/runtime/scheme.go:111"
_SHOWN_BYTES: Final = 30
_TYPE_META: Final = (
    r'struct { APIVersion string "json:\"apiVersion,omitempty\""; Kind string "json:\"kind,omitempty\"" }'
)


def applied_object(body: bytes) -> Json:
    """The object that a body of server-side apply describes, in YAML or JSON; raises StatusError."""
    try:
        found = bounded_json(body)
    except (msgspec.DecodeError, RecursionError):
        from navarch.cluster.server.wire.yaml_bodies import read_yaml  # noqa: PLC0415 - most bodies are JSON

        found = read_yaml(body)
    if _SURROGATE(body):
        # What JSON writes as two escapes is no character in YAML, and the real server reads all of it as YAML.
        raise bad_request(f"{_NO_JSON}: yaml: found invalid Unicode character escape code")
    if found is None:
        return {}
    if not isinstance(found, dict):
        kind = f"json: cannot unmarshal {go_kind(found)} into {_MAP}"
        raise bad_request(f"error decoding YAML: error unmarshaling JSON: while decoding JSON: {kind}")
    return found


class MalformedBodyError(StatusError):
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
    return plain_media_type(media_type) in {JSON, ""}


def is_yaml(media_type: str) -> bool:
    """Whether a body is YAML."""
    return plain_media_type(media_type) == YAML


def decode_kind(body: bytes, media_type: str, kind: str) -> Json:
    """The object that a body is, which should be of that kind; refuses with 400 or 415 what is none."""
    try:
        return typed_object(decode_json(body, media_type))
    except MalformedBodyError as error:
        raise error.instead_of(kind, body) from None


def decode_options(body: bytes, media_type: str, kind: str) -> Json:
    """The options of a request, of that kind in whatever group; refuses with 400 or 415."""
    value = typed_object(decode_json(body, media_type, _META, kind))
    if (found := value.get("kind") or kind) != kind:
        version = value.get("apiVersion") or _META
        raise bad_request(f'no kind "{found}" is registered for version "{version}" in scheme "{SCHEME}"')
    return value


def decode_json(body: bytes, media_type: str = JSON, api_version: str = "", kind: str = "") -> Any:
    """The value that a body is, as JSON; refuses with 400 or 415.

    Protobuf that does not say of which kind it is, is of the one that is given.
    """
    refuse_too_large(body)
    written = plain_media_type(media_type)
    if written in {JSON, ""}:
        return _from_json(body)
    if written in {YAML, _APPLY}:
        return applied_object(body)
    if written == PROTOBUF:
        return _from_protobuf(body, api_version, kind)
    raise unsupported_media_type(JSON, YAML, PROTOBUF)


def plain_media_type(media_type: str) -> str:
    return media_type.split(";", maxsplit=1)[0].strip().lower()


def unsupported_media_type(*accepted: str) -> StatusError:
    why = f"the body of the request was in an unknown format - accepted media types include: {', '.join(accepted)}"
    return StatusError(415, "UnsupportedMediaType", why)


def _from_json(body: bytes) -> Any:
    try:
        return bounded_json(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        from navarch.cluster.server.wire.json_errors import json_fault  # noqa: PLC0415 - most bodies have none

        raise MalformedBodyError(f"couldn't get version/kind; json parse error: {json_fault(body) or error}") from None


def _from_protobuf(body: bytes, api_version: str, kind: str) -> Json:
    from navarch.cluster.server.wire.protobuf import MalformedError, opened  # noqa: PLC0415 - only Go clients send it

    found_version, found_kind = "", ""
    try:
        envelope = opened(body)
        found_version, found_kind = envelope.api_version or api_version, envelope.kind or kind
        return envelope.read(found_version, found_kind)
    except MalformedError as error:
        raise MalformedBodyError(str(error), found_version.rpartition("/")[2], found_kind) from None


def typed_object(value: Any) -> Json:
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
    return MalformedBodyError(f"couldn't get version/kind; json parse error: json: cannot unmarshal {what}")


def _summary(body: bytes) -> str:
    if not body:
        return "<empty>"
    shown = body[:_SHOWN_BYTES]
    text = shown.decode(errors="replace") if body.startswith(b"{") else shown.hex()
    return f"{text} ..." if len(body) > _SHOWN_BYTES else text
