"""Writing back what a model does not know.

An object that was read remembers the bytes it was read from. What is written is those bytes with the change applied:
the difference between the model's view then and its view now. Items of a list are aligned by their map keys; where a
list has none, equal items find each other and the others go by index.
"""

from __future__ import annotations

from typing import Any

from navarch.api.codec import decode, encode, to_builtins
from navarch.api.resource import Object
from navarch.api.shape import Shape, shape_of

__all__ = ["full_wire"]

_OPAQUE = Shape()


def full_wire(changed: Object) -> Any:
    """`changed` as JSON values, with every field of the original that the model does not know."""
    now = to_builtins(changed)
    wire = getattr(changed, "__wire__", None)
    if wire is None:
        return now
    then = to_builtins(decode(type(changed), wire))
    return carry(decode(dict[str, Any], wire), then, now, shape_of(type(changed)))


def carry(original: Any, then: Any, now: Any, shape: Shape = _OPAQUE) -> Any:
    """`original` with the change from `then` to `now` applied to it.

    >>> carry({"size": 1, "unknown": True}, {"size": 1}, {"size": 3})
    {'size': 3, 'unknown': True}
    """
    if _same(then, now):
        return original
    if isinstance(original, dict) and isinstance(then, dict) and isinstance(now, dict):
        return _carry_dict(original, then, now, shape)
    if isinstance(original, list) and isinstance(then, list) and isinstance(now, list):
        return _carry_list(original, then, now, shape)
    return now


def _same(then: Any, now: Any) -> bool:
    """Equal, and of the same types all the way down: to Python 1, 1.0 and True are one."""
    return bool(then == now) and encode(then) == encode(now)


def _carry_dict(original: dict[str, Any], then: dict[str, Any], now: dict[str, Any], shape: Shape) -> dict[str, Any]:
    kept = {key: value for key, value in original.items() if key in now or key not in then}
    for key, value in now.items():
        if key not in then:
            kept[key] = value
        elif key in original or not _same(then[key], value):
            kept[key] = carry(original.get(key), then[key], value, _child(shape, key))
    return kept


def _carry_list(original: list[Any], then: list[Any], now: list[Any], shape: Shape) -> list[Any]:
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


def _merge_by_keys(original: list[Any], then: list[Any], now: list[Any], shape: Shape) -> list[Any]:
    """The original is a later version than `then`: what somebody else added stays, what he removed stays away.

    Items that both have changed are carried over field by field; the original's order holds, new items follow.
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
    """Equal items first, in order; each of the rest with the one at its own index, if that one is still free."""
    free: dict[bytes, list[int]] = {}
    for index, item in enumerate(then):
        free.setdefault(encode(item), []).append(index)
    partners: list[int | None] = [places.pop(0) if (places := free.get(encode(item))) else None for item in now]
    taken = set(partners)
    for index, partner in enumerate(partners):
        if partner is None and index < len(then) and index not in taken:
            partners[index] = index
    return partners


def _child(shape: Shape, key: str) -> Shape:
    return (shape.fields or {}).get(key) or shape.items or _OPAQUE
