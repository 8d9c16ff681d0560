"""The rows of one kind in tables."""

from __future__ import annotations

from typing import Any

from navarch.cluster.server.kinds.builtin.cells.age import Ages
from navarch.cluster.server.kinds.builtin.cells.table import CELLS
from navarch.cluster.server.objects.types import Column
from navarch.cluster.server.wire.request import Json

__all__ = ["Rows"]


class Rows:
    """Makes the row of an object: as its kind says, or of its name and age."""

    def __init__(self, api_version: str, plural: str, columns: tuple[Column, ...], ages: Ages) -> None:
        self._cells = CELLS.get((api_version, plural))
        self._columns = columns
        self._ages = ages

    def of(self, value: Json) -> list[Any]:
        """The cells, one for each column."""
        if self._cells is not None:
            return self._cells(value, self._ages)
        return [self._plain(column.name, value) for column in self._columns]

    def _plain(self, column: str, value: Json) -> Any:
        metadata = value.get("metadata", {})
        match column:
            case "Name":
                return metadata.get("name", "")
            case "Created At":
                return metadata.get("creationTimestamp")
            case "Age":
                return self._ages.of(value)
            case _:
                return ""
