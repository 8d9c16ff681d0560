"""How a version is served: columns, subresources, selectable fields, deprecation."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from navarch.errors import InvalidValueError
from navarch.schema.document import JsonSchema
from navarch.schema.fieldpaths import field_path
from navarch.schema.inspection.faults import DefinitionFault, unexpected

__all__ = ["version_faults"]

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = {"int32", "int64", "float", "double", "byte", "date", "date-time", "password"}
_SELECTABLE_TYPES = {"string", "boolean", "integer"}
_MOST_SELECTABLE = 8


def version_faults(version: dict[str, Any], schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    """What is wrong with one version beside its schema."""
    yield from _deprecation_faults(version, path)
    for index, column in enumerate(version.get("additionalPrinterColumns", ())):
        yield from _column_faults(column, f"{path}.additionalPrinterColumns[{index}]")
    scale = version.get("subresources", {}).get("scale")
    if scale is not None:
        yield from _scale_faults(scale, f"{path}.subresources.scale")
    yield from _selectable_faults(version.get("selectableFields", []), schema, f"{path}.selectableFields")


def _deprecation_faults(version: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield unexpected(f"{path}.deprecationWarning", "a warning on a deprecated version", "another", "set deprecated")
    if not 0 < len(warning.encode()) <= 256 or not warning.isprintable():
        yield unexpected(f"{path}.deprecationWarning", "1 to 256 printable characters", repr(warning), "shorten it")


def _column_faults(column: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    if not column.get("name"):
        yield unexpected(f"{path}.name", "a name", "none", "name the column")
    name = f"column {column.get('name', '')!r}"
    if column.get("type") not in _COLUMN_TYPES:
        expected = f"{name} to have a type of {', '.join(_COLUMN_TYPES)}"
        yield unexpected(f"{path}.type", expected, column.get("type"), "use one of them")
    if column.get("format") and column["format"] not in _COLUMN_FORMATS:
        expected = f"one of {', '.join(sorted(_COLUMN_FORMATS))}"
        yield unexpected(f"{path}.format", expected, column["format"], "use one of them")
    shown = column.get("jsonPath", "")
    if not shown.startswith("."):
        remedy = f'start it with a dot: ".{shown}"' if shown else 'write path=".spec.size" for the field to show'
        yield unexpected(f"{path}.jsonPath", f"{name} to have a path like .spec.size", repr(shown or None), remedy)


def _scale_faults(scale: dict[str, Any], path: str) -> Iterator[DefinitionFault]:
    homes = {
        "specReplicasPath": (".spec.",),
        "statusReplicasPath": (".status.",),
        "labelSelectorPath": (".spec.", ".status."),
    }
    for key, starts in homes.items():
        given = scale.get(key)
        if (given or key != "labelSelectorPath") and not str(given or "").startswith(starts):
            yield unexpected(f"{path}.{key}", f"a path under {' or '.join(starts)}", repr(given), "use such a path")


def _selectable_faults(fields: list[dict[str, Any]], schema: JsonSchema, path: str) -> Iterator[DefinitionFault]:
    seen: set[str] = set()
    for index, entry in enumerate(fields):
        where, given = f"{path}[{index}].jsonPath", entry.get("jsonPath", "")
        try:
            shown, found = field_path(given, schema, quoted=False)
        except InvalidValueError as error:
            yield unexpected(where, "the path of a field", f"{given!r} ({error})", "name a field of the schema")
            continue
        if not given or shown.split(".")[0] == "metadata":
            yield unexpected(where, "a field outside of the metadata", repr(given), "select by labels instead")
        if found.get("type") not in _SELECTABLE_TYPES:
            yield unexpected(where, "a string, boolean or integer", f"type {found.get('type')}", "remove Selectable")
        if shown in seen:
            yield unexpected(where, "each field once", repr(given), "remove the repetition")
        seen.add(shown)
    if len(seen) > _MOST_SELECTABLE:
        yield unexpected(path, f"at most {_MOST_SELECTABLE} selectable fields", len(seen), "remove some")
