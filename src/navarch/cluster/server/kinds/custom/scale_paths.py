"""The fields of a custom object that its scale subresource stands for."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from navarch.cluster.server.wire.causes import invalid
from navarch.cluster.server.wire.request import Json
from navarch.errors import Cause
from navarch.schema.values.violations import go_number, shown

__all__ = ["AccessError", "ScalePaths", "integer_at", "put_at", "text_at", "value_at"]

_MOST: Final = 2**31 - 1
_GO_TYPES: Final = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
}


class AccessError(Exception):
    """A path leads into something of another type."""


class ScalePaths(msgspec.Struct, frozen=True):
    """Where the wanted and the actual number of replicas are, and the selector (empty: nowhere)."""

    spec: str
    status: str
    selector: str = ""

    def spec_faults(self, value: Json) -> list[Cause]:
        """What is wrong with the wanted replicas."""
        return _replicas_faults(value, self.spec)

    def status_faults(self, value: Json) -> list[Cause]:
        """What is wrong with the actual replicas and the selector."""
        faults = _replicas_faults(value, self.status)
        if self.selector:
            try:
                text_at(value, self.selector)
            except AccessError as error:
                faults.append(invalid(self.selector, "", str(error)))
        return faults


def _replicas_faults(value: Json, path: str) -> list[Cause]:
    try:
        replicas = integer_at(value, path)
    except AccessError as error:
        return [invalid(path, 0, str(error))]
    if replicas is not None and replicas < 0:
        return [invalid(path, replicas, "should be a non-negative integer")]
    if replicas is not None and replicas > _MOST:
        return [invalid(path, replicas, f"should be less than or equal to {_MOST}")]
    return []


def value_at(value: Json, path: str) -> Any:
    """What is at a path of plain names; None if nothing is. Raises `AccessError`."""
    found: Any = value
    walked = ""
    for name in path.removeprefix(".").split("."):
        walked += f".{name}"
        if found is None:
            return None
        if not isinstance(found, dict):
            raise _access_error(walked, found, "map[string]interface{}")
        found = found.get(name)
    return found


def integer_at(value: Json, path: str) -> int | None:
    """The integer at a path."""
    found = value_at(value, path)
    if found is not None and type(found) is not int:
        raise _access_error(path, found, "int64")
    return found


def text_at(value: Json, path: str) -> str | None:
    """The text at a path."""
    found = value_at(value, path)
    if found is not None and not isinstance(found, str):
        raise _access_error(path, found, "string")
    return found


def put_at(value: Json, path: str, item: Any) -> None:
    """Sets what is at a path; copies the objects on the way, so that what they were taken from stays as it is."""
    *above, last = path.removeprefix(".").split(".")
    for name in above:
        inner = value.get(name)
        value[name] = {**inner} if isinstance(inner, dict) else {}
        value = value[name]
    value[last] = item


def _access_error(path: str, found: Any, expected: str) -> AccessError:
    said = found if isinstance(found, str) else go_number(found) if type(found) in {int, float} else shown(found)
    return AccessError(f"{path} accessor error: {said} is of the type {_GO_TYPES[type(found)]}, expected {expected}")
