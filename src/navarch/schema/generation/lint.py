"""Checks beyond the API server's: limits that every value fails, unknown formats, dead paths; and printer columns."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from navarch.api.codec import encode
from navarch.api.markers import Column
from navarch.api.names import LABEL_KEY, LABEL_VALUE
from navarch.schema.generation.annotations import author_place
from navarch.schema.inspection.structural import DefinitionFault, children, unexpected
from navarch.schema.json_schema import JsonSchema, at_json_path, dead_end
from navarch.schema.values.formats import is_known_format
from navarch.schema.values.numbers import holds

_LARGEST = 1536 * 1024
"""What etcd takes in one request, if nobody has configured it otherwise."""


def envelope_faults(manifest: dict[str, Any]) -> Iterator[DefinitionFault]:
    """Yields the faults of a CRD outside of its spec: labels, annotations, size."""
    metadata = manifest["metadata"]
    for field in ("labels", "annotations"):
        for key in metadata.get(field, {}):
            if not LABEL_KEY.allows(key):
                yield unexpected(
                    f"metadata.{field}", LABEL_KEY.description, repr(key), f"write another key in {field}="
                )
    for key, value in metadata.get("labels", {}).items():
        if not isinstance(value, str) or not LABEL_VALUE.allows(value):
            yield unexpected(f"metadata.labels[{key}]", LABEL_VALUE.description, repr(value), "write another value")
    size = len(encode(manifest))
    if size > _LARGEST:
        remedy = "shorten its descriptions with crd(..., description_limit=200), or split the kind"
        yield unexpected("spec", f"a CRD of at most {_LARGEST:,} bytes, which is what etcd takes", f"{size:,}", remedy)


_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}
_DATE_FORMATS = {"date-time", "date"}


def column_schemas(
    schema: JsonSchema, columns: list[tuple[str, Column]], *, add_age: bool = True
) -> list[dict[str, Any]]:
    """Returns `additionalPrinterColumns`. The server adds an age only if there are no columns, so this adds one too.

    A column named Age, or one that shows the creation time, replaces it.
    """
    entries = [_entry(schema, path, column) for path, column in columns]
    aged = any(entry["name"] == _AGE["name"] or entry["jsonPath"] == _AGE["jsonPath"] for entry in entries)
    return entries if aged or not entries or not add_age else [*entries, dict(_AGE)]


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


_PAIRS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_LONGEST = ("maxLength", "maxItems", "maxProperties")
_SCALE_ARGUMENTS = {
    "specReplicasPath": "spec_replicas",
    "statusReplicasPath": "status_replicas",
    "labelSelectorPath": "selector",
}
_PYTHON_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "integer": (int,),
    "number": (int, float),
    "boolean": (bool,),
}


def senseless(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """Yields the limits of a kind's schema that fail every value."""
    for low, high in _PAIRS:
        if low in schema and high in schema and schema[low] > schema[high]:
            yield unexpected(f"{path}.{low}", f"{low} up to {high} {schema[high]}", schema[low], "exchange them")
    yield from _unusable_limits(schema, path)
    multiple = schema.get("multipleOf", 1)
    if multiple <= 0 or not float(multiple).is_integer():
        remedy = "write a Rule: the server cuts the fraction off for values that have none"
        yield unexpected(f"{path}.multipleOf", "a positive whole number", multiple, remedy)
    for limit in _LONGEST:
        if schema.get(limit, 0) < 0:
            yield unexpected(f"{path}.{limit}", f"{limit} of 0 or more", schema[limit], "leave it out for no limit")
    yield from _choices(schema, path)
    for child, inner in children(schema, path):
        yield from senseless(child, inner)


def _choices(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    wanted = _PYTHON_TYPES.get(schema.get("type", ""))
    if schema.get("enum") == []:
        yield unexpected(f"{path}.enum", "values to choose from", "none", "name them, or leave enum out")
    for value in schema.get("enum") or () if wanted else ():
        if not isinstance(value, wanted or ()) or (isinstance(value, bool) and wanted != (bool,)):
            yield unexpected(f"{path}.enum", f"values of type {schema['type']}", repr(value), "remove it")


def _unusable_limits(schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    kind, form = schema.get("type"), schema.get("format")
    for keyword in ("minimum", "maximum"):
        limit = schema.get(keyword, 0)
        if kind == "integer" and not float(limit).is_integer():
            remedy = "round it, or use float: the server fails every value otherwise"
            yield unexpected(f"{path}.{keyword}", "a whole number on an integer", limit, remedy)
        elif not holds(kind, form, limit):
            remedy = "leave it out, or take one nearer to 0: the server fails every value otherwise"
            yield unexpected(f"{path}.{keyword}", f"a {keyword} that the server can compare with", limit, remedy)


def name_collisions(names: dict[str, Any]) -> Iterator[DefinitionFault]:
    """Yields names that one kind has twice; a short name that is the singular too is harmless, and common."""
    seen = {names.get("plural")}
    for index, short in enumerate(names.get("shortNames", ())):
        if short in seen:
            yield unexpected(f"spec.names.shortNames[{index}]", "a name not used yet", repr(short), "remove it")
        seen.add(short)


def dead_paths(version: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    """Yields columns and scale paths of a version that lead to no field: the column stays empty, scaling fails."""
    schema = version["schema"]["openAPIV3Schema"]
    for index, column in enumerate(version.get("additionalPrinterColumns", ())):
        given = column["jsonPath"]
        if reason := dead_end(given, schema):
            expected = f"column {column['name']!r} to show a field of the schema"
            where = f"{path}.additionalPrinterColumns[{index}].jsonPath"
            yield unexpected(where, expected, f"{given!r} ({reason})", "correct its path, or add the field")
    for key, given in version.get("subresources", {}).get("scale", {}).items():
        if reason := dead_end(given, schema):
            expected = f"{_SCALE_ARGUMENTS[key]} of Scale to be the path of a field"
            remedy = f"add the field, or write Scale({_SCALE_ARGUMENTS[key]}=...)"
            yield unexpected(f"{path}.subresources.scale.{key}", expected, f"{given!r} ({reason})", remedy)


def warn_of_unknown_formats(schema: JsonSchema, places: Mapping[str, str], path: str = "") -> None:
    """Warns of unknown formats, as the server does: it keeps them and checks nothing."""
    given = schema.get("format")
    if given and not is_known_format(schema.get("type"), given):
        warnings.warn(f"{author_place(path, places)}: the API server does not know the format {given!r}", stacklevel=3)
    for child, inner in children(schema, path):
        warn_of_unknown_formats(child, places, inner)
