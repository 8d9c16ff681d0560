"""JSON paths as the columns of CRDs use them: fields, indexes, slices, `[*]` and filters."""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any, Final

from navarch.errors import InvalidValueError

__all__ = ["compile_path"]

Find = Callable[[Any], list[Any]]
_Step = Callable[[Any], Iterator[Any]]

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
_WORDS: Final = {"true": True, "false": False}


@lru_cache(4096)
def compile_path(path: str) -> Find:
    """A function that finds everything a path leads to; what is missing is not found. Raises `InvalidValueError`.

    >>> compile_path('.conditions[?(@.type=="Ready")].status')({"conditions": [{"type": "Ready", "status": "True"}]})
    ['True']
    """
    steps = list(_steps(path))

    def find(value: Any) -> list[Any]:
        found = [value]
        for step in steps:
            found = [inner for outer in found for inner in step(outer)]
        return found

    return find


def _steps(path: str) -> Iterator[_Step]:
    position = 0
    while position < len(path):
        if path.startswith(("[*]", ".*"), position):
            position += 3 if path[position] == "[" else 2
            yield _all
            continue
        step, position = _step(path, position)
        yield step


def _step(path: str, position: int) -> tuple[_Step, int]:
    if match := _FIELD.match(path, position):
        name = match["quoted"] if match["name"] is None else re.sub(r"\\(.)", r"\1", match["name"])
        return _field(name), match.end()
    if match := _INDEX.match(path, position):
        return _slice(int(match["index"]), None), match.end()
    if match := _SLICE.match(path, position):
        return _slice(_number(match["start"]), _number(match["end"]), one=False), match.end()
    if match := _FILTER.match(path, position):
        return _filter(match["left"], match["operator"], match["right"]), match.end()
    raise InvalidValueError(f"expected a field, an index or a filter, got {path[position:]!r}")


def _number(text: str) -> int | None:
    return int(text) if text not in {"", "-"} else None


def _all(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from (value[name] for name in sorted(value))
    elif isinstance(value, list):
        yield from value


def _field(name: str) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, dict) and name in value:
            yield value[name]

    return step


def _slice(start: int | None, end: int | None, *, one: bool = True) -> _Step:
    def step(value: Any) -> Iterator[Any]:
        if not isinstance(value, list):
            return
        if not one:
            yield from value[start:end]
        elif start is not None and -len(value) <= start < len(value):
            yield value[start]

    return step


def _filter(left: str, sign: str | None, right: str | None) -> _Step:
    find = compile_path(left)
    wanted = _literal(right or "")
    compare = _OPERATORS.get(sign or "")

    def holds(item: Any) -> bool:
        found = find(item)
        if not found:
            return False
        return compare is None or (type(found[0]) is type(wanted) and compare(found[0], wanted))

    def step(value: Any) -> Iterator[Any]:
        if isinstance(value, list):
            yield from filter(holds, value)

    return step


def _literal(text: str) -> Any:
    if text[:1] in {'"', "'"}:
        return text[1:-1]
    if text in _WORDS:
        return _WORDS[text]
    try:
        return float(text) if "." in text else int(text)
    except ValueError:
        return text
