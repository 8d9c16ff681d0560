"""The columns of `kubectl get`."""

from __future__ import annotations

from typing import Any

from navarch.api.markers import Column
from navarch.errors import DefinitionError
from navarch.schema.document import JsonSchema
from navarch.schema.fieldpaths import at_json_path

__all__ = ["column_schemas"]

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_DATE_FORMATS = {"date-time", "date"}


def column_schemas(kind: str, schema: JsonSchema, columns: list[tuple[str, Column]]) -> list[dict[str, Any]]:
    """`additionalPrinterColumns`. The server adds an age only where there are no columns, so one is added here too.

    A column named Age, or one that shows the creation time, takes its place.
    """
    entries = [_entry(kind, schema, path, column) for path, column in columns]
    aged = any(entry["name"] == _AGE["name"] or entry["jsonPath"] == _AGE["jsonPath"] for entry in entries)
    return entries if aged or not entries else [*entries, dict(_AGE)]


def _entry(kind: str, schema: JsonSchema, path: str, column: Column) -> dict[str, Any]:
    path = column.path or path
    entry: dict[str, Any] = {"name": column.name, "type": column.type or _type_at(kind, schema, path, column.name)}
    if column.format is not None:
        entry["format"] = column.format
    if column.description is not None:
        entry["description"] = column.description
    if column.priority:
        entry["priority"] = column.priority
    return entry | {"jsonPath": path}


def _type_at(kind: str, schema: JsonSchema, path: str, name: str) -> str:
    found = at_json_path(schema, path)
    if found is None:
        raise DefinitionError(
            f"{kind}: expected column {name!r} to have a type, since its path {path!r} is not a field of the schema; "
            f"write Column({name!r}, path={path!r}, type='string')"
        )
    json_type = found.get("type")
    if json_type == "string" and found.get("format") in _DATE_FORMATS:
        return "date"
    return json_type if json_type in {"integer", "number", "boolean"} else "string"
