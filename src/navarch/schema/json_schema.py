"""JSON schemas of CustomResourceDefinitions, and paths to their fields: `.spec.replicas`, `.spec.labels['app']`."""

from __future__ import annotations

import re
from typing import Any

from navarch.errors import InvalidValueError

JsonSchema = dict[str, Any]

TYPE_FIELDS = ("apiVersion", "kind", "metadata")
"""The fields of every object, whatever its schema says."""


_TOKEN = re.compile(r"\.(?P<name>[^.\[\]]+)|\['(?P<quoted>(?:[^'\\]|\\.)*)'\]")
_PLAIN = re.compile(r"\.([\w-]+)(?=[.\[]|$)")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


def field_path(path: str, schema: JsonSchema, *, quoted: bool = True) -> tuple[str, JsonSchema]:
    """Returns the path as an error names it, and the schema at that path. Raises `InvalidValueError` with the reason.

    `quoted` allows `['name']`. A path cannot step into a list.

    >>> field_path(".a['b-c']", {"properties": {"a": {"properties": {"b-c": {"type": "string"}}}}})
    ('a.b-c', {'type': 'string'})
    """
    shown, position = "", 0
    while position < len(path):
        match = _TOKEN.match(path, position)
        if match is None or (match["quoted"] is not None and not quoted):
            raise InvalidValueError(f"expected .name{' or [quoted name]' if quoted else ''}, got {path[position:]!r}")
        name = match["name"] if match["quoted"] is None else _unescaped(match["quoted"])
        named, schema = _step(name, schema)
        shown += f".{name}" if named else f"[{name}]"
        position = match.end()
    return shown.removeprefix("."), schema


def at_json_path(schema: JsonSchema, path: str) -> JsonSchema | None:
    """Returns the schema at a simple path; None if there is none, or the path is not simple."""
    try:
        return field_path(path, schema)[1] if path.startswith(".") else None
    except InvalidValueError:
        return None


def dead_end(path: str, schema: JsonSchema) -> str:
    """Returns the reason why a JSON path leads to no field of an object's schema; empty if it leads, or may lead, to
    one.

    Follows only the plain names at the beginning, and only as far as the schema lists the fields.

    >>> dead_end(".spec.siz", {"properties": {"spec": {"properties": {"size": {"type": "integer"}}}}})
    "expected one of the fields size, got 'siz'"
    """
    position, whole_object = 0, True
    while match := _PLAIN.match(path, position):
        name = match[1]
        if (whole_object and name in TYPE_FIELDS) or _keeps_unknown(name, schema):
            return ""
        try:
            _, schema = _step(name, schema)
        except InvalidValueError as error:
            return str(error)
        position, whole_object = match.end(), bool(schema.get("x-kubernetes-embedded-resource"))
    return ""


def _keeps_unknown(name: str, schema: JsonSchema) -> bool:
    known = name in schema.get("properties", {})
    open_map = schema.get("additionalProperties") is True
    return not known and (open_map or bool(schema.get("x-kubernetes-preserve-unknown-fields")))


def _step(name: str, schema: JsonSchema) -> tuple[bool, JsonSchema]:
    properties = schema.get("properties")
    if properties:
        if name not in properties:
            raise InvalidValueError(f"expected one of the fields {', '.join(properties)}, got {name!r}")
        found: JsonSchema = properties[name]
        return True, found
    values = schema.get("additionalProperties")
    if isinstance(values, dict):
        return False, values
    raise InvalidValueError(f"expected a struct or map to find {name!r} in, got type {schema.get('type')}")


def _unescaped(text: str) -> str:
    def replace(match: re.Match[str]) -> str:
        if match[1] not in _ESCAPES:
            raise InvalidValueError(f"expected a known escape, got {match[0]!r}")
        return _ESCAPES[match[1]]

    return re.sub(r"\\(.)", replace, text)
