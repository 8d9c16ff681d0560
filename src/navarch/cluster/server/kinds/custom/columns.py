"""The columns that a CRD declares, and the cells of its objects."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

import msgspec

from navarch.cluster.server.kinds.builtin.generic.columns import Ages
from navarch.cluster.server.kinds.custom.jsonpath import Visits, compile_path
from navarch.cluster.server.objects.types import Column
from navarch.cluster.server.wire.request import Json
from navarch.errors import InvalidValueError
from navarch.schema.values.violations import go_number

__all__ = ["Cells", "cells_of", "columns_of"]

Cells = Callable[[Json], list[Any]]
_LEAST, _MOST = -(2**63), 2**63 - 1
_NAME: Final = Column("Name", "string", "name")
_AGE: Final[Json] = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"}


def columns_of(version: Json) -> tuple[Column, ...]:
    """The columns of a version: always the name, then what it declares, or the age."""
    declared = version.get("additionalPrinterColumns")
    if not declared:
        return (_NAME, Column("Age", "date"))
    return (_NAME, *map(_column, declared))


def _column(declared: Json) -> Column:
    described = f"Custom resource definition column (in JSONPath format): {declared.get('jsonPath', '')}"
    return Column(
        declared["name"],
        declared["type"],
        declared.get("format", ""),
        declared.get("description") or described,
        declared.get("priority", 0),
    )


def cells_of(version: Json, ages: Ages) -> Cells:
    """A function from an object to the cells of its row. What too much would have to be looked at for is left empty."""
    cells = [_cell(column, ages) for column in version.get("additionalPrinterColumns") or [_AGE]]

    def row(value: Json) -> list[Any]:
        visits = Visits()
        return [value["metadata"].get("name", ""), *(cell(value, visits) for cell in cells)]

    return row


def _cell(column: Json, ages: Ages) -> Callable[[Json, Visits], Any]:
    try:
        find = compile_path(column.get("jsonPath", ""))
    except InvalidValueError:
        return lambda _value, _visits: None
    show = _shown_by(column["type"], ages)

    def cell(value: Json, visits: Visits) -> Any:
        found = find(value, visits)
        return show(found[0]) if found else None

    return cell


def _shown_by(kind: str, ages: Ages) -> Callable[[Any], Any]:
    match kind:
        case "integer":
            return lambda value: max(_LEAST, min(_MOST, int(value))) if _is_number(value) else None
        case "number":
            return lambda value: value if _is_number(value) else None
        case "boolean":
            return lambda value: value if isinstance(value, bool) else None
        case "date":
            return lambda value: _age(value, ages) if isinstance(value, str) else None
        case _:
            return _text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _age(moment: str, ages: Ages) -> str:
    shown = ages.since(moment)
    return "<invalid>" if moment and shown == "<unknown>" else shown


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if _is_number(value):
        return go_number(value)
    return msgspec.json.encode(value, order="sorted").decode()
