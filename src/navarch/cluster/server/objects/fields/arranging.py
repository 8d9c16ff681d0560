"""Orders the items of a list after a strategic merge."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Any

import msgspec

from navarch.cluster.server.wire.go_text import go_text, go_type


class StrategicError(ValueError):
    """A patch that cannot be applied; `code` is that of the real server's answer."""

    def __init__(self, message: str, *, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


def identity(value: Any) -> Hashable:
    """Returns what is equal for two values if and only if they are the same in JSON: items are found by it.

    >>> identity(1) == identity(True), identity(1) == identity(1.0), identity({"a": 1}) == identity({"a": 1})
    (False, False, True)
    """
    if isinstance(value, dict | list):
        return list, msgspec.json.encode(value, order="deterministic")
    return type(value), value


def key_of(item: Any, key: str) -> Any:
    """What an item is known by; raises StrategicError if that is missing."""
    if not isinstance(item, dict):
        raise StrategicError(f"expected a map[string]interface {{}}, but received a {go_type(item)}")
    if key not in item:
        raise StrategicError(f"map: {go_text(item)} does not contain declared merge key: {key}")
    return item[key]


def element_type(original: list[Any], patch: list[Any]) -> type:
    """The type that all items of both lists have; raises StrategicError if they differ or are lists."""
    kinds = {type(item) for item in (*original, *patch)}
    if not kinds:
        raise StrategicError("no elements in any of the given slices")
    if len(kinds) > 1:
        raise StrategicError(f"list element types are not identical: {go_text([original, patch])}")
    kind = kinds.pop()
    if kind is list:
        raise StrategicError("lists of lists are not supported", code=422)
    return kind


def check_order(patch: list[Any], order: list[Any], key: str) -> None:
    """That the items of a patch come in the order that it asks for."""
    rest = iter(order)
    for item in patch:
        if isinstance(item, dict) and "$patch" in item:
            continue
        if order and not any(_is_same(item, each, key) for each in rest):
            raise StrategicError(
                f"The order in patch list:\n{go_text(patch)}\n doesn't match $setElementOrder list:\n{go_text(order)}\n"
            )


def _is_same(left: Any, right: Any, key: str) -> bool:
    if key:
        left, right = key_of(left, key), key_of(right, key)
    return identity(left) == identity(right)


def arranged(merged: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """The items: those of `order` as it has them, and among them the others where they were before."""
    first, places = _places(order, key), _places(before, key)
    wanted: list[tuple[int, int, Any]] = []
    others: list[tuple[int, Any]] = []
    for item in merged:
        known_by = identity(_required(item, key))
        place = places.get(known_by, -1)
        if known_by in first:
            wanted.append((first[known_by], place, item))
        else:
            others.append((place, item))
    wanted.sort(key=lambda placed: placed[0])
    others.sort(key=lambda placed: placed[0])
    return _woven(others, wanted)


def _places(items: Iterable[Any], key: str) -> dict[Hashable, int]:
    """Where each item comes first, by what it is known by."""
    found: dict[Hashable, int] = {}
    for at, item in enumerate(items):
        found.setdefault(identity(_known_by(item, key)), at)
    return found


def _woven(others: list[tuple[int, Any]], wanted: list[tuple[int, int, Any]]) -> list[Any]:
    """An item that was there before goes in front of the first wanted one that it preceded."""
    result: list[Any] = []
    done = 0
    for _, place, item in wanted:
        while done < len(others) and 0 <= others[done][0] < place:
            result.append(others[done][1])
            done += 1
        result.append(item)
    return result + [item for _, item in others[done:]]


def _known_by(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _required(item: Any, key: str) -> Any:
    return key_of(item, key) if key else item


def deduplicated(items: Iterable[Any]) -> list[Any]:
    """Each scalar once."""
    return list({identity(item): item for item in items}.values())
