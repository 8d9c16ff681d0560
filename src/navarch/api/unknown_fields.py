"""Writes an object back with the fields that its model lacks, and refuses values that JSON would change.

A decoded object remembers its bytes. The written form is those bytes with the change applied: the difference between
the model's view at the time of decoding and its view now. List items are matched by their map keys; in a list without
keys, equal items match first and the others match by index.
"""

from __future__ import annotations

import math
import types
import typing
from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

from navarch.api.codec import decode, encode, encode_orderly, to_builtins
from navarch.api.json_patch import create_json_patch
from navarch.api.model import Model, fields_of
from navarch.api.model_shape import ModelShape, shape_of
from navarch.api.resource import Object
from navarch.errors import InvalidValueError

_EACH = ""
Path = tuple[str, ...]
"""Attribute names from the object down; the empty name stands for each value of a map or list."""


def check_sendable(target: Object) -> None:
    """Raises `InvalidValueError` if a bytes field holds text, or a number field infinity or NaN.

    Bytes are base64 on the wire: text in such a field would be sent as if it were base64 already, and the server would
    store another value. Infinity and NaN would be sent as null, which gives up the field.
    """
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
    """Returns the paths of a class that hold bytes or floats; most classes have none."""
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


_OPAQUE = ModelShape()
_EXACT = frozenset({str, int, bool, type(None)})
"""Types whose equal values have the same JSON."""


def full_wire(changed: Object) -> Any:
    """Returns `changed` as JSON values, with every field of the original that the model lacks."""
    now = to_builtins(changed)
    wire = getattr(changed, "__wire__", None)
    if wire is None:
        return now
    then = to_builtins(decode(type(changed), wire))
    return carry(decode(dict[str, Any], wire), then, now, shape_of(type(changed)))


class ObjectChange:
    """Remembers an object as it is now, to tell later how it was changed."""

    __slots__ = ("_object", "_then")

    def __init__(self, target: Object) -> None:
        self._object = target
        self._then = encode_orderly(target)

    def patch(self) -> list[dict[str, Any]]:
        """Returns the operations (RFC 6902) that make the same change to the object on the wire."""
        now = encode_orderly(self._object)
        if now == self._then:
            return []
        then = decode(dict[str, Any], self._then)
        wire = getattr(self._object, "__wire__", None)
        before = then if wire is None else decode(dict[str, Any], wire)
        after = carry(before, then, decode(dict[str, Any], now), shape_of(type(self._object)))
        return create_json_patch(before, after)


def carry(original: Any, then: Any, now: Any, shape: ModelShape = _OPAQUE) -> Any:
    """Applies the change from `then` to `now` to `original`.

    >>> carry({"size": 1, "unknown": True}, {"size": 1}, {"size": 3})
    {'size': 3, 'unknown': True}
    """
    return original if _same(then, now) else _carry_change(original, then, now, shape)


def _carry_change(original: Any, then: Any, now: Any, shape: ModelShape) -> Any:
    if isinstance(original, dict) and isinstance(then, dict) and isinstance(now, dict):
        return _carry_dict(original, then, now, shape)
    if isinstance(original, list) and isinstance(then, list) and isinstance(now, list):
        return _carry_list(original, then, now, shape)
    return now


def _same(then: Any, now: Any) -> bool:
    """Compares values and types at every level: to Python 1, 1.0 and True are equal."""
    if type(then) in _EXACT and type(then) is type(now):
        return bool(then == now)
    return bool(then == now) and encode(then) == encode(now)


def _carry_dict(
    original: dict[str, Any], then: dict[str, Any], now: dict[str, Any], shape: ModelShape
) -> dict[str, Any]:
    kept = {key: value for key, value in original.items() if key in now or key not in then}
    for key, value in now.items():
        if key not in then:
            kept[key] = value
        elif not _same(then[key], value):
            kept[key] = _carry_change(original.get(key), then[key], value, _child(shape, key))
    return kept


def _carry_list(original: list[Any], then: list[Any], now: list[Any], shape: ModelShape) -> list[Any]:
    if shape.keys and not _have_the_same_keys(original, then, shape.keys):
        return _merge_by_keys(original, then, now, shape)
    if shape.unordered or len(original) != len(then):
        return now  # the items of a set have no unknown fields, and the model does not know their order
    partners = _by_keys(then, now, shape.keys) if shape.keys else _by_likeness(then, now)
    items = shape.items or _OPAQUE
    return [
        item if partner is None else carry(original[partner], then[partner], item, items)
        for item, partner in zip(now, partners, strict=True)
    ]


def _have_the_same_keys(one: list[Any], other: list[Any], keys: tuple[str, ...]) -> bool:
    return [_key(item, keys) for item in one] == [_key(item, keys) for item in other]


def _merge_by_keys(original: list[Any], then: list[Any], now: list[Any], shape: ModelShape) -> list[Any]:
    """Merges into an original that is newer than `then`: items that others added stay, items that they removed stay
    removed.

    Items that both changed are merged field by field; the order is that of the original, new items follow.
    """
    before, theirs, ours = ({_key(item, shape.keys): item for item in items} for items in (then, original, now))
    merged = [
        carry(item, before.get(key), ours[key], shape.items or _OPAQUE) if key in ours else item
        for key, item in theirs.items()
        if key in ours or key not in before
    ]
    added = [
        item for key, item in ours.items() if key not in theirs and not (key in before and _same(before[key], item))
    ]
    return [*merged, *added]


def _by_keys(then: list[Any], now: list[Any], keys: tuple[str, ...]) -> list[int | None]:
    places = {_key(item, keys): index for index, item in enumerate(then)}
    return [places.get(_key(item, keys)) for item in now]


def _key(item: Any, keys: tuple[str, ...]) -> bytes:
    return encode([item.get(key) for key in keys] if isinstance(item, dict) else item)


def _by_likeness(then: list[Any], now: list[Any]) -> list[int | None]:
    """Matches equal items first, in order, then each other item with the one at its own index if that one is free."""
    free: dict[bytes, list[int]] = {}
    for index, item in enumerate(then):
        free.setdefault(encode(item), []).append(index)
    partners: list[int | None] = [places.pop(0) if (places := free.get(encode(item))) else None for item in now]
    taken = set(partners)
    for index, partner in enumerate(partners):
        if partner is None and index < len(then) and index not in taken:
            partners[index] = index
    return partners


def _child(shape: ModelShape, key: str) -> ModelShape:
    return (shape.fields or {}).get(key) or shape.items or _OPAQUE
