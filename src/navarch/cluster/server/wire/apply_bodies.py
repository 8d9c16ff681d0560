"""Bodies of server-side apply: YAML, of which JSON is a part."""

from __future__ import annotations

import re
from typing import Final

import msgspec

from navarch.cluster.server.wire.budget import bounded_json
from navarch.cluster.server.wire.go_text import go_kind
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import bad_request

__all__ = ["applied_object"]

_SURROGATE: Final = re.compile(rb"[^\\](?:\\\\)*\\u[dD][89a-fA-F]").search
_NO_JSON: Final = "error decoding YAML: error converting YAML to JSON"
_MAP: Final = "Go value of type map[string]interface {}"


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
