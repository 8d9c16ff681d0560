"""What a server takes although it cannot be meant: limits that no value can keep, formats that nobody checks."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import Any

from navarch.schema.document import JsonSchema
from navarch.schema.fieldpaths import dead_end
from navarch.schema.generation.where import author_place
from navarch.schema.inspection.faults import DefinitionFault, unexpected
from navarch.schema.inspection.structural import children
from navarch.schema.values.formats import is_known_format
from navarch.schema.values.numbers import holds

__all__ = ["dead_paths", "name_collisions", "senseless", "warn_of_unknown_formats"]

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
    """Every place of a kind's schema whose limits fail every value."""
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
    """Names by which one kind would be found twice."""
    seen = {names.get("plural"), names.get("singular")}
    for index, short in enumerate(names.get("shortNames", ())):
        if short in seen:
            yield unexpected(f"spec.names.shortNames[{index}]", "a name not used yet", repr(short), "remove it")
        seen.add(short)


def dead_paths(version: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    """Columns and scale paths of a version that lead to no field: the column stays empty, scaling fails."""
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
    """As the server does: an unknown format is kept, and nobody checks it."""
    given = schema.get("format")
    if given and not is_known_format(schema.get("type"), given):
        warnings.warn(f"{author_place(path, places)}: the API server does not know the format {given!r}", stacklevel=3)
    for child, inner in children(schema, path):
        warn_of_unknown_formats(child, places, inner)
