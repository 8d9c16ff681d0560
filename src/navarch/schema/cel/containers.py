"""Lists and maps: lookup, equality and concatenation, and the list and object types that a schema defines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, ClassVar

from navarch.schema.cel import types
from navarch.schema.cel.errors import CelEvaluationError
from navarch.schema.cel.types import CelType
from navarch.schema.cel.values import NONE, CelDuration, Optional, Timestamp, Uint, no_such_overload, some

_MISSING = object()
_DIRECT = frozenset({str, int, bool, float, bytes, Uint, Timestamp, CelDuration, type(None)})
_EMPTIABLE = frozenset({type(None), bool, int, Uint, float, str, bytes, list, dict})
_FIRST_NANOSECOND = -62_135_596_800_000_000_000
_NUMBERS = frozenset({int, Uint, float})
_TRUTHS = (0, 1)
MOST_NODES = 1_000_000
"""More values than any request has; a container beyond it holds the same parts many times."""


class SchemaList(list[object]):
    """A list that comes from an object rather than from the rule."""

    __slots__ = ()
    cel_type: ClassVar[CelType] = types.list_of(types.DYN)


class SetList(SchemaList):
    """A list with x-kubernetes-list-type=set: order does not matter, `+` is the union."""

    __slots__ = ()


class KeyedList(SchemaList):
    """A list with x-kubernetes-list-type=map: keys identify its items, `+` merges."""

    __slots__ = ("keys",)

    def __init__(self, items: Iterable[object], keys: tuple[str, ...]) -> None:
        super().__init__(items)
        self.keys = keys

    def key_of(self, item: object) -> tuple[object, ...]:
        if not isinstance(item, dict):
            raise no_such_overload()
        return tuple(item.get(key) for key in self.keys)


class SchemaObject(dict[str, object]):
    """An object or map that comes from an object; fields that its schema lacks are `hidden`.

    Only comparison sees hidden fields.
    """

    __slots__ = ("hidden",)
    cel_type: ClassVar[CelType] = types.map_of(types.DYN, types.DYN)

    def __init__(self, fields: dict[str, object], hidden: dict[str, object] | None = None) -> None:
        super().__init__(fields)
        self.hidden = hidden


class UnreadableValue:
    """Stands for a part of an object that does not fit its type, such as an integer written as 3.0.

    A rule that reads it, even with `has`, fails; other rules are not affected.
    """

    __slots__ = ("error",)
    __hash__ = None  # type: ignore[assignment]  # whatever compares it, looks at it

    def __init__(self, error: CelEvaluationError) -> None:
        self.error = error

    def __eq__(self, other: object) -> bool:
        raise self.error

    def __getitem__(self, key: object) -> object:
        raise self.error


def readable(value: object) -> object:
    """Returns `value`. Raises `CelEvaluationError` if it is unreadable."""
    if type(value) is UnreadableValue:
        raise value.error
    return value


def equal(left: object, right: object) -> bool:
    """CEL's `==`: compares numbers of different types by value; values of other types are never equal to each other."""
    kind = type(left)
    if kind is type(right) and kind in _DIRECT:
        return left == right
    if kind in _NUMBERS and type(right) in _NUMBERS:
        return _numbers_equal(left, right)
    if isinstance(left, list):
        return isinstance(right, list) and _lists_equal(left, right)
    if isinstance(left, dict):
        return isinstance(right, dict) and _maps_equal(left, right)
    if isinstance(left, Optional) and isinstance(right, Optional):
        return left.present == right.present and equal(left.value, right.value)
    if isinstance(left, CelType) and isinstance(right, CelType):
        return left.name == right.name
    return type(readable(left)) is type(readable(right)) and left == right


def _numbers_equal(left: Any, right: Any) -> bool:
    if float in {type(left), type(right)}:
        return float(left) == float(right)
    return int(left) == int(right)


def _lists_equal(left: list[object], right: list[object]) -> bool:
    if len(left) != len(right):
        return False
    if isinstance(left, SetList):
        return all(contains(left, item) for item in right)
    if isinstance(left, KeyedList):
        by_key = {left.key_of(item): item for item in left}
        return all(equal(by_key.get(left.key_of(item), _MISSING), item) for item in right)
    return all(map(equal, left, right))


def _maps_equal(left: dict[Any, object], right: dict[Any, object]) -> bool:
    hidden, other = getattr(left, "hidden", None) or {}, getattr(right, "hidden", None) or {}
    if len(left) + len(hidden) != len(right) + len(other):
        return False
    if any(key in other and value != other[key] for key, value in hidden.items()):
        return False
    for key, value in left.items():
        found = find(right, key, _MISSING)
        if found is _MISSING or not equal(value, found):
            return False
    return True


def find(entries: dict[Any, object], key: object, default: object) -> object:
    """Returns the value at `key`; a number finds an equal whole number of any numeric type."""
    if type(key) is str:
        return entries.get(key, default)
    if isinstance(entries, SchemaObject):
        raise no_such_overload()
    if type(key) in _NUMBERS and key not in _TRUTHS and key not in entries:
        return default  # but for true and false, Python finds numbers by their value, too
    for known, value in entries.items():
        if equal(known, key) and (type(known) is not float or type(key) is float):
            return value
    return default


def contains(items: list[object], wanted: object) -> bool:
    if type(wanted) is str:
        return wanted in items
    return any(equal(item, wanted) for item in items)


def member_of(wanted: object, container: object) -> bool:
    """CEL's `in`."""
    if isinstance(container, list):
        return contains(container, wanted)
    if isinstance(container, dict):
        return readable(find(container, wanted, _MISSING)) is not _MISSING
    raise no_such_overload()


def index(container: object, key: object) -> object:
    """CEL's `[…]`; of an optional container, an optional."""
    if isinstance(container, Optional):
        return index_if_present(container, key)
    found = _lookup(container, key)
    if found is not _MISSING:
        return readable(found)
    if isinstance(container, list):
        raise CelEvaluationError(f"index out of bounds: {key} in a list of {len(container)}")
    raise CelEvaluationError(f"no such key: {key}")


def index_if_present(container: object, key: object) -> Optional:
    """CEL's `[?…]`."""
    if isinstance(container, Optional):
        return index_if_present(container.value, key) if container.present else NONE
    if not isinstance(container, list | dict):
        return NONE
    found = _lookup(container, key)
    return NONE if found is _MISSING else some(readable(found))


def _lookup(container: object, key: object) -> object:
    if key is None:
        raise no_such_overload()
    if isinstance(container, dict):
        return find(container, key, _MISSING)
    if not isinstance(container, list) or (isinstance(container, SchemaList) and type(key) is not int):
        raise no_such_overload()
    position = _position(key)
    return container[position] if 0 <= position < len(container) else _MISSING


def _position(key: object) -> int:
    if isinstance(key, bool) or not isinstance(key, int | float) or key != key // 1:
        raise no_such_overload()
    return int(key)


def select(container: object, field: str) -> object:
    """Returns the value of a field; of an optional container, an optional. Raises `CelEvaluationError` if it is not
    set.
    """
    if isinstance(container, Optional):
        return select_if_present(container, field)
    if container is None:
        raise CelEvaluationError(f"no such key: {field}")
    if not isinstance(container, dict):
        raise no_such_overload()
    found: object = container.get(field, _MISSING)
    if found is _MISSING:
        raise CelEvaluationError(f"no such key: {field}")
    return readable(found)


def select_if_present(container: object, field: str) -> Optional:
    """CEL's `.?`."""
    if isinstance(container, Optional):
        return select_if_present(container.value, field) if container.present else NONE
    return some(readable(container[field])) if has(container, field) else NONE  # type: ignore[index]  # it is a map then


def has(container: object, field: str) -> bool:
    if isinstance(container, Optional):
        return container.present and has(container.value, field)
    if isinstance(container, list):
        raise no_such_overload()
    return isinstance(container, dict) and readable(container.get(field, _MISSING)) is not _MISSING


def concatenate(left: list[object], right: list[object]) -> list[object]:
    """CEL's `+`: the type of the left list decides how the right one is added."""
    if isinstance(left, SetList):
        union = SetList(left)
        for item in right:
            if not contains(union, item):
                union.append(item)
        return union
    if isinstance(left, KeyedList):
        return _merge(left, right)
    if isinstance(left, SchemaList):
        return SchemaList([*left, *right])
    return [*left, *right] if left else right


def _merge(left: KeyedList, right: list[object]) -> KeyedList:
    merged = KeyedList(left, left.keys)
    positions = {left.key_of(item): position for position, item in enumerate(left)}
    for item in right:
        position = positions.get(left.key_of(item))
        if position is None:
            merged.append(item)
        else:
            merged[position] = item
    return merged


def is_zero(value: object) -> bool:
    """Returns True if `optional.ofNonZeroValue` omits the value; it never omits lists and maps of the object itself."""
    if isinstance(value, CelDuration):
        return value.nanos == 0
    if isinstance(value, Timestamp):
        return value.nanos == _FIRST_NANOSECOND
    return type(value) in _EMPTIABLE and not value


def nodes_of(value: object) -> int:
    """Returns the number of values in a list or map, at any depth; a value that occurs twice counts twice.

    Stops counting at `MOST_NODES` and returns a hundred times as many.
    """
    count = 0
    pending: list[object] = [value]
    while pending:
        each = pending.pop()
        if isinstance(each, Optional):
            pending.append(each.value)
        elif isinstance(each, list | dict):
            count += len(each)
            if count > MOST_NODES:
                return MOST_NODES * 100
            for item in each.values() if isinstance(each, dict) else each:
                if type(item) not in _DIRECT:
                    pending.append(item)  # noqa: PERF401 - faster than a comprehension where little is nested
    return count
