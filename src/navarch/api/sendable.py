"""Values that would go out as something else.

On the wire bytes are base64, which is text. Text put where bytes belong would go out as if it were base64 already, and
a password would be stored as something else. Numbers that JSON does not know would go out as null, which gives the
field up. Type checkers see the first; this is for those who do not use one.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from navarch.api.model import Model, fields_of
from navarch.api.resource import Object
from navarch.errors import InvalidValueError

__all__ = ["check_sendable"]

_EACH = ""
Path = tuple[str, ...]
"""Attribute names from the object down; the empty name stands for each value of a map or list."""


def check_sendable(target: Object) -> None:
    """Raises `InvalidValueError` if a field for bytes holds text, or one for numbers infinity or NaN."""
    for path, kind in _paths(type(target)):
        for place, value in _values(target, path, ""):
            if kind is bytes and isinstance(value, str):
                raise InvalidValueError(
                    f'{target.kind} {target.name!r}: expected bytes in {place}, got text; write b"..." or .encode()'
                )
            if isinstance(value, float) and not math.isfinite(value):
                raise InvalidValueError(
                    f"{target.kind} {target.name!r}: expected a number that JSON can hold in {place}, got {value}; "
                    f"leave the field unset for no limit"
                )


@cache
def _paths(kind: type) -> tuple[tuple[Path, type], ...]:
    """The places of a class where bytes or fractions belong; most classes have none."""
    return tuple(_below(kind, ()))


def _below(annotation: Any, above: tuple[Any, ...]) -> Iterator[tuple[Path, type]]:
    origin, arguments = typing.get_origin(annotation), typing.get_args(annotation)
    if annotation is bytes or annotation is float:
        yield (), annotation
    elif origin is typing.Annotated:
        yield from _below(arguments[0], above)
    elif origin in {typing.Union, types.UnionType}:
        for member in arguments:
            yield from _below(member, above)
    elif origin in {list, tuple, set, frozenset}:
        yield from (((_EACH, *path), leaf) for path, leaf in _below(arguments[0], above))
    elif origin in {dict, Mapping}:
        yield from (((_EACH, *path), leaf) for path, leaf in _below(arguments[1], above))
    elif isinstance(annotation, type) and issubclass(annotation, (Model, Object)) and annotation not in above:
        for info in fields_of(annotation):
            found = _below(info.type, (*above, annotation))
            yield from (((info.name, *path), leaf) for path, leaf in found)


def _values(value: Any, path: Path, place: str) -> Iterator[tuple[str, Any]]:
    if value is None or not path:
        yield place, value
    elif path[0] != _EACH:
        yield from _values(getattr(value, path[0], None), path[1:], f"{place}.{path[0]}".lstrip("."))
    else:
        for key, item in value.items() if isinstance(value, dict) else enumerate(value):
            yield from _values(item, path[1:], f"{place}[{key!r}]")
