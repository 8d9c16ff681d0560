"""The order of the items of a list after a strategic merge."""

from __future__ import annotations

from typing import Any

from navarch.cluster.server.fields.gotext import go_text, go_type

__all__ = ["StrategicError", "arranged", "check_order", "deduplicated", "element_type", "equal", "key_of"]


class StrategicError(ValueError):
    """A patch that cannot be applied; `code` is that of the real server's answer."""

    def __init__(self, message: str, *, code: int = 500) -> None:
        super().__init__(message)
        self.code = code


def equal(left: Any, right: Any) -> bool:
    """Whether two scalars are the same in JSON."""
    return type(left) is type(right) and bool(left == right)


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
    return equal(key_of(left, key), key_of(right, key)) if key else equal(left, right)


def arranged(merged: list[Any], order: list[Any], before: list[Any], key: str) -> list[Any]:
    """The items: those of `order` as it has them, and among them the others where they were before."""
    first = [_known_by(item, key) for item in order]
    wanted: list[Any] = []
    others: list[Any] = []
    for item in merged:
        (others if _place(_required(item, key), first) < 0 else wanted).append(item)
    wanted.sort(key=lambda item: _place(_known_by(item, key), first))
    places = [_known_by(item, key) for item in before]
    others.sort(key=lambda item: _place(_known_by(item, key), places))
    return _woven(others, wanted, places, key)


def _woven(others: list[Any], wanted: list[Any], places: list[Any], key: str) -> list[Any]:
    """An item that was there before goes in front of the first wanted one that it preceded."""
    result: list[Any] = []
    rest = list(others)
    for item in wanted:
        place = _place(_known_by(item, key), places)
        while rest and 0 <= _place(_known_by(rest[0], key), places) < place:
            result.append(rest.pop(0))
        result.append(item)
    return result + rest


def _place(known_by: Any, places: list[Any]) -> int:
    kind = type(known_by)
    for at, each in enumerate(places):
        if type(each) is kind and each == known_by:
            return at
    return -1


def _known_by(item: Any, key: str) -> Any:
    return item.get(key) if key and isinstance(item, dict) else item


def _required(item: Any, key: str) -> Any:
    return key_of(item, key) if key else item


def deduplicated(items: list[Any]) -> list[Any]:
    """Each scalar once; the last item takes the place of one that is there already."""
    result = list(items)
    index = 0
    while index < len(result):
        other = index + 1
        while other < len(result):
            if equal(result[index], result[other]):
                last = result.pop()
                if other < len(result):
                    result[other] = last
            else:
                other += 1
        index += 1
    return result
