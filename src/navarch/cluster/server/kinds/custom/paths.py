"""Paths into custom objects: the JSONPath of columns and selectable fields, and the paths of `scale`."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import islice
from typing import Any, Final, Protocol

import msgspec

from navarch.api.strconv import parse_int64
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_causes import invalid
from navarch.errors import Cause, InvalidValueError
from navarch.schema.values.violations import go_number, shown

_MOST_VISITS: Final = 20_000


class Visits:
    """The number of list and map items that one path, or several together, may still visit."""

    def __init__(self) -> None:
        self._left = _MOST_VISITS

    def each(self, items: Iterable[Any]) -> Iterator[Any]:
        """The items, one by one. Raises `InvalidValueError` when too many have been looked at."""
        for item in items:
            self._left -= 1
            if self._left < 0:
                raise InvalidValueError(f"expected at most {_MOST_VISITS} items to look at, got more")
            yield item


class Find(Protocol):
    """A compiled path."""

    def __call__(self, value: Any, visits: Visits | None = None) -> list[Any]:
        """The first value that the path leads to, if there is one, and if it is found before the visits are spent."""


_Step = Callable[[Any, Visits], Iterator[Any]]
_FIELD: Final = re.compile(r"\.(?P<name>(?:[^.\[\]\\]|\\.)+)|\[(?P<quote>['\"])(?P<quoted>.*?)(?P=quote)\]")
_INDEX: Final = re.compile(r"\[(?P<index>-?\d+)\]")
_SLICE: Final = re.compile(r"\[(?P<start>-?\d*):(?P<end>-?\d*)\]")
_FILTER: Final = re.compile(
    r"\[\?\(\s*@(?P<left>[^=!<>\s]*)\s*(?:(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>\"[^\"]*\"|'[^']*'|[^)\s]+)\s*)?\)\]"
)
_OPERATORS: Final[dict[str, Callable[[Any, Any], bool]]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_MOST_DIGITS: Final = 20
_LONGEST: Final = 4096
_DEEPEST: Final = 8
"""The limit of nested filters."""
_WORDS: Final = {"true": True, "false": False}


@lru_cache(4096)
def compile_path(path: str) -> Find:
    """A function that finds the first value a path leads to; what is missing is not found. Raises `InvalidValueError`.

    >>> compile_path('.conditions[?(@.type=="Ready")].status')({"conditions": [{"type": "Ready", "status": "True"}]})
    ['True']
    """
    if len(path) > _LONGEST:
        raise InvalidValueError(f"expected a path of at most {_LONGEST} characters, got {len(path)}")
    walk = _compiled(path, depth=0)

    def find(value: Any, visits: Visits | None = None) -> list[Any]:
        try:
            return list(islice(walk(value, visits or Visits()), 1))
        except InvalidValueError:
            return []

    return find


def _compiled(path: str, depth: int) -> _Step:
    if depth > _DEEPEST:
        raise InvalidValueError(f"expected filters in at most {_DEEPEST} filters, got more")
    steps = list(_steps(path, depth))

    def walk(value: Any, visits: Visits) -> Iterator[Any]:
        found: Iterator[Any] = iter((value,))
        for step in steps:
            found = _stepped(found, step, visits)
        return found

    return walk


def _stepped(found: Iterator[Any], step: _Step, visits: Visits) -> Iterator[Any]:
    for value in found:
        yield from step(value, visits)


def _steps(path: str, depth: int) -> Iterator[_Step]:
    position = 0
    while position < len(path):
        if path.startswith(("[*]", ".*"), position):
            position += 3 if path[position] == "[" else 2
            yield _all
            continue
        step, position = _step(path, position, depth)
        yield step


def _step(path: str, position: int, depth: int) -> tuple[_Step, int]:
    if match := _FIELD.match(path, position):
        name = match["quoted"] if match["name"] is None else re.sub(r"\\(.)", r"\1", match["name"])
        return _field(name), match.end()
    if match := _INDEX.match(path, position):
        return _slice(_number(match["index"]), None), match.end()
    if match := _SLICE.match(path, position):
        return _slice(_number(match["start"]), _number(match["end"]), one=False), match.end()
    if match := _FILTER.match(path, position):
        return _filter(match["left"], match["operator"], match["right"], depth), match.end()
    raise InvalidValueError(f"expected a field, an index or a filter, got {path[position:]!r}")


def _number(text: str) -> int | None:
    if text in {"", "-"}:
        return None
    number = parse_int64(text)
    if number is None:
        raise InvalidValueError(f"expected an index of 64 bits, got {text!r}")
    return number


def _all(value: Any, visits: Visits) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from visits.each(value[name] for name in sorted(value))
    elif isinstance(value, list):
        yield from visits.each(value)


def _field(name: str) -> _Step:
    def step(value: Any, _: Visits) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _slice(start: int | None, end: int | None, *, one: bool = True) -> _Step:
    def step(value: Any, visits: Visits) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        if not one:
            yield from visits.each(value[start:end])
        elif start is not None and -len(value) <= start < len(value):
            yield value[start]

    return step


def _filter(left: str, sign: str | None, right: str | None, depth: int) -> _Step:
    walk = _compiled(left, depth + 1)
    wanted = _literal(right or "")
    compare = _OPERATORS.get(sign or "")

    def holds(item: Any, visits: Visits) -> bool:
        found = list(islice(walk(item, visits), 1))
        if not found:
            return False
        return compare is None or (type(found[0]) is type(wanted) and compare(found[0], wanted))

    def step(value: Any, visits: Visits) -> Iterator[Any]:
        if isinstance(value, list):
            yield from (item for item in visits.each(value) if holds(item, visits))

    return step


def _literal(text: str) -> Any:
    if text[:1] in {'"', "'"}:
        return text[1:-1]
    if text in _WORDS:
        return _WORDS[text]
    try:
        return float(text) if "." in text else int(text) if len(text) <= _MOST_DIGITS else text
    except ValueError:
        return text


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
    """The paths of the desired and actual replicas and of the selector (empty: none)."""

    spec: str
    status: str
    selector: str = ""

    def spec_faults(self, value: Json) -> list[Cause]:
        """Returns the faults of the desired replicas."""
        return _replicas_faults(value, self.spec)

    def status_faults(self, value: Json) -> list[Cause]:
        """Returns the faults of the actual replicas and the selector."""
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
    """Returns the value at a path of plain names; None if there is none. Raises `AccessError`."""
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
    """Returns the integer at a path."""
    found = value_at(value, path)
    if found is not None and type(found) is not int:
        raise _access_error(path, found, "int64")
    return found


def text_at(value: Json, path: str) -> str | None:
    """Returns the text at a path."""
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
