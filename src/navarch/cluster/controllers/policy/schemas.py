"""Schemas out of OpenAPI documents, in one piece."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

_REFERENCE: Final = "#/components/schemas/"
_KINDS: Final = "x-kubernetes-group-version-kind"

Schemas = Mapping[str, dict[str, Any]]


def resolved(schemas: Schemas, api_version: str, kind: str) -> dict[str, Any] | None:
    """The schema of a kind, with those that it refers to in their places; None if it is not there. One that contains
    itself ends where it would begin again.
    """
    group, _, version = api_version.rpartition("/")
    wanted = {"group": group, "version": version, "kind": kind}
    for name, schema in schemas.items():
        if wanted in (schema.get(_KINDS) or ()):
            return _whole(schema, schemas, (name,))
    return None


def _whole(schema: dict[str, Any], schemas: Schemas, above: tuple[str, ...]) -> dict[str, Any]:
    name = _referred(schema)
    if name:
        return {} if name in above or name not in schemas else _whole(schemas[name], schemas, (*above, name))
    made = {**schema}
    if isinstance(schema.get("properties"), dict):
        made["properties"] = {key: _whole(each, schemas, above) for key, each in schema["properties"].items()}
    for part in ("items", "additionalProperties"):
        if isinstance(schema.get(part), dict):
            made[part] = _whole(schema[part], schemas, above)
    return made


def _referred(schema: dict[str, Any]) -> str:
    """The schema that this one stands for."""
    parts = schema.get("allOf") or [schema]
    reference = parts[0].get("$ref", "") if len(parts) == 1 else ""
    return str(reference).removeprefix(_REFERENCE)
