"""The columns of `kubectl get`."""

from __future__ import annotations

from typing import Any

from navarch.api.markers import Column
from navarch.schema.document import JsonSchema
from navarch.schema.fieldpaths import at_json_path, dead_end

__all__ = ["column_schemas"]

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_DATE_FORMATS = {"date-time", "date"}


def column_schemas(schema: JsonSchema, columns: list[tuple[str, Column]]) -> list[dict[str, Any]]:
    """`additionalPrinterColumns`. The server adds an age only where there are no columns, so one is added here too.

    A column named Age, or one that shows the creation time, takes its place.
    """
    entries = [_entry(schema, path, column) for path, column in columns]
    aged = any(entry["name"] == _AGE["name"] or entry["jsonPath"] == _AGE["jsonPath"] for entry in entries)
    return entries if aged or not entries else [*entries, dict(_AGE)]


def _entry(schema: JsonSchema, path: str, column: Column) -> dict[str, Any]:
    path = column.path or path
    entry = {
        "name": column.name,
        "type": column.type or _type_at(schema, path),
        "format": column.format,
        "description": column.description,
        "priority": column.priority or None,
        "jsonPath": path,
    }
    return {key: value for key, value in entry.items() if value is not None}


def _type_at(schema: JsonSchema, path: str) -> str | None:
    """None where the schema cannot tell; a path that leads nowhere is a fault of its own, whatever the type."""
    found = at_json_path(schema, path)
    if found is None:
        return "string" if dead_end(path, schema) or not path.startswith(".") else None
    json_type = found.get("type")
    if json_type == "string" and found.get("format") in _DATE_FORMATS:
        return "date"
    return json_type if json_type in {"integer", "number", "boolean"} else "string"
