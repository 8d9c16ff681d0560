"""Fields that a version cannot hold, kept in one annotation and restored on the way back.

A conversion calls the function and then its reverse. Where the result differs from the original, the target version
cannot hold the original's value: the annotation keeps that value with the path and a fingerprint of the value that the
reverse function returns instead. On the way back the kept value is restored if the reverse function still returns
the value of the fingerprint; otherwise somebody changed that part in between, and the change wins.

The annotation holds one entry for each version that lost fields: `{"v1": [{"path": ["spec", "zone"], "value": "a"}]}`.
A conversion to v1 consumes the entry of v1, so the annotation does not grow with the number of conversions.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from hashlib import blake2b
from typing import Any, Final

import msgspec

from navarch.api.json_patch import Json
from navarch.api.model_shape import ModelShape

KEPT_FIELDS: Final = "navarch.dev/kept-fields"
"""The annotation; the only one that Navarch writes on users' objects."""
ANNOTATIONS_LIMIT: Final = 256 * 1024
"""Bytes of all annotations of an object, keys and values, that the API server accepts."""

_OPAQUE: Final = ModelShape()
_ABSENT: Final = msgspec.UNSET
_sorted_json: Final = msgspec.json.Encoder(order="deterministic")


class ItemStep(msgspec.Struct, frozen=True, omit_defaults=True):
    """A step of a path into a list: the item with these map keys; in a list without map keys, the item at this index."""

    keys: dict[str, Any] = {}
    index: int = 0


class KeptField(msgspec.Struct, frozen=True, omit_defaults=True):
    """One value that a version cannot hold.

    `replaces` is the fingerprint of the value at this path after a conversion there and back; unset if there is none.
    Without `value`, the original has no such field although the conversion returns one. `items` has the fingerprints of
    all items of a list without map keys, by which items are recognized that moved; nothing is restored at such a path.
    """

    path: tuple[str | ItemStep, ...]
    value: Any = _ABSENT
    replaces: str | msgspec.UnsetType = _ABSENT
    items: tuple[str, ...] = ()


_annotation_decoder: Final = msgspec.json.Decoder(dict[str, tuple[KeptField, ...]])


def read_annotation(annotations: Mapping[str, Any] | None) -> dict[str, tuple[KeptField, ...]]:
    """Returns the kept fields by the version that they belong to.

    An annotation that cannot be read counts as empty: an error would make the lists of all objects fail because of a
    single one that somebody edited.
    """
    text = (annotations or {}).get(KEPT_FIELDS)
    if not isinstance(text, str):
        return {}
    try:
        return _annotation_decoder.decode(text)
    except (msgspec.DecodeError, RecursionError, UnicodeEncodeError):
        return {}


def annotation_of(kept: Mapping[str, Sequence[KeptField]]) -> str:
    """Returns the text of the annotation."""
    return msgspec.json.encode(kept, order="deterministic").decode()


def size_of(annotations: Mapping[str, str]) -> int:
    """Returns the size of annotations as the API server counts it."""
    return sum(len(name.encode()) + len(value.encode()) for name, value in annotations.items())


def fingerprint(value: Json) -> str:
    """Returns a short text that differs for different values."""
    return blake2b(_sorted_json.encode(value), digest_size=8).hexdigest()


# Comparing


def lost_fields(original: Json, returned: Json, filled: Json, shape: ModelShape) -> list[KeptField]:
    """Returns the values of `original` that differ in `returned`, which is `original` converted there and back.

    `filled` is `original` with the defaults of its class. A default that only `returned` has is no difference: the API
    server adds it as well. Items of lists are matched by their map keys, else by index. The result does not depend on the
    order of members, so that equal objects have equal annotations.
    """
    found = _compare(original, returned, filled, shape, ())
    return sorted(found, key=lambda field: _sorted_json.encode(field.path))


def is_same(left: Json, right: Json) -> bool:
    """Compares two JSON values; to the API server, 1 and 1.0 are the same number, but 1 and true are not."""
    return bool(left == right) and (_sorted_json.encode(left) == _sorted_json.encode(right) or _is_alike(left, right))


def _is_alike(left: Json, right: Json) -> bool:
    if isinstance(left, dict):
        return all(_is_alike(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return all(map(_is_alike, left, right))
    return isinstance(left, bool) is isinstance(right, bool)


_Path = tuple[str | ItemStep, ...]


def _compare(original: Json, returned: Json, filled: Json, shape: ModelShape, path: _Path) -> Iterator[KeptField]:
    if is_same(original, returned):
        return
    if isinstance(original, dict) and isinstance(returned, dict) and _is_open(shape):
        yield from _compare_objects(original, returned, filled if isinstance(filled, dict) else {}, shape, path)
    elif isinstance(original, list) and isinstance(returned, list):
        yield from _compare_lists(original, returned, filled, shape, path)
    else:
        yield KeptField(path, original, fingerprint(returned))


def _is_open(shape: ModelShape) -> bool:
    """Returns whether members are compared one by one; a union or untyped value is one part."""
    return shape.fields is not None or shape.items is not None


def _compare_objects(
    original: dict[str, Json], returned: dict[str, Json], filled: dict[str, Json], shape: ModelShape, path: _Path
) -> Iterator[KeptField]:
    for name, value in original.items():
        if name in returned:
            child = (shape.fields or {}).get(name) or shape.items or _OPAQUE
            yield from _compare(value, returned[name], filled.get(name), child, (*path, name))
        else:
            yield KeptField((*path, name), value)
    for name, value in returned.items():
        if name not in original and not (name in filled and is_same(filled[name], value)):
            yield KeptField((*path, name), replaces=fingerprint(value))


def _compare_lists(
    original: list[Json], returned: list[Json], filled: Json, shape: ModelShape, path: _Path
) -> Iterator[KeptField]:
    ours, theirs = _by_keys(original, shape.keys), _by_keys(returned, shape.keys)
    items = shape.items or _OPAQUE
    known: list[Json] = filled if isinstance(filled, list) and len(filled) == len(original) else [None] * len(original)
    if shape.unordered and sorted(map(fingerprint, original)) == sorted(map(fingerprint, returned)):
        return
    if ours is not None and theirs is not None and _have_one_order(ours, theirs):
        for index, (key, item) in enumerate(ours.items()):
            step = ItemStep(keys=_keys_of(item, shape.keys), index=index)
            if key in theirs:
                yield from _compare(item, theirs[key], known[index], items, (*path, step))
            else:
                yield KeptField((*path, step), item)
        for key, item in theirs.items():
            if key not in ours:
                yield KeptField((*path, ItemStep(keys=_keys_of(item, shape.keys))), replaces=fingerprint(item))
    elif len(original) == len(returned) and not shape.unordered:
        found = [
            field
            for index, (item, other) in enumerate(zip(original, returned, strict=True))
            for field in _compare(item, other, known[index], items, (*path, ItemStep(index=index)))
        ]
        if found:
            yield KeptField(path, items=tuple(map(fingerprint, returned)))
        yield from found
    else:
        yield KeptField(path, original, fingerprint(returned))


def _by_keys(items: list[Json], keys: Sequence[str]) -> dict[bytes, Json] | None:
    """Returns the items by their map keys; None if the list has none, or if they do not identify each item."""
    if not keys or not all(isinstance(item, dict) and all(key in item for key in keys) for item in items):
        return None
    found = {_sorted_json.encode(_keys_of(item, keys)): item for item in items}
    return found if len(found) == len(items) else None


def _keys_of(item: Json, keys: Sequence[str]) -> dict[str, Json]:
    return {key: item[key] for key in keys}


def _have_one_order(ours: dict[bytes, Json], theirs: dict[bytes, Json]) -> bool:
    return [key for key in ours if key in theirs] == [key for key in theirs if key in ours]


# Restoring


def restore(converted: Json, kept: Sequence[KeptField]) -> None:
    """Puts kept values back into an object, in place, where nobody changed the value that they replace."""
    root = _Branch()
    for field in kept:
        root.add(field)
    root.restore_below(converted)


class _Branch:
    """Kept fields with a common path; those of one list are restored together, because their items are matched."""

    def __init__(self) -> None:
        self.kept: KeptField | None = None
        self.below: dict[bytes, tuple[str | ItemStep, _Branch]] = {}

    def add(self, field: KeptField) -> None:
        branch = self
        for step in field.path:
            branch = branch.below.setdefault(_sorted_json.encode(step), (step, _Branch()))[1]
        branch.kept = field

    def restore_in(self, parent: dict[str, Json], name: str) -> None:
        """Restores a member of an object."""
        current = parent.get(name, _ABSENT)
        if not self.replaces(current):
            self.restore_below(current)
        elif self.value is _ABSENT:
            del parent[name]
        else:
            parent[name] = self.value

    @property
    def value(self) -> Json:
        return _ABSENT if self.kept is None else self.kept.value

    def replaces(self, current: Json) -> bool:
        """Returns whether a value is kept here, and the conversion returns what it returned at that time."""
        if self.kept is None or (self.kept.value is self.kept.replaces is _ABSENT):
            return False
        if self.kept.replaces is _ABSENT or current is _ABSENT:
            return self.kept.replaces is current
        return fingerprint(current) == self.kept.replaces

    def restore_below(self, value: Json) -> None:
        if isinstance(value, dict):
            for step, branch in self.below.values():
                if isinstance(step, str):
                    branch.restore_in(value, step)
        elif isinstance(value, list):
            steps = [(step, branch) for step, branch in self.below.values() if isinstance(step, ItemStep)]
            if self.kept is not None and self.kept.items:
                _restore_indexed(value, self.kept.items, {step.index: branch for step, branch in steps})
            else:
                _restore_keyed(value, steps)


def _restore_keyed(items: list[Json], steps: Sequence[tuple[ItemStep, _Branch]]) -> None:
    """Restores items by their map keys; an item that the other version cannot hold returns to its index."""
    added = []
    for step, branch in steps:
        place = next((index for index, item in enumerate(items) if _has_keys(item, step.keys)), None)
        current = _ABSENT if place is None else items[place]
        if not branch.replaces(current):
            branch.restore_below(current)
        elif place is None:
            added.append((step.index, branch.value))
        else:
            items[place : place + 1] = [] if branch.value is _ABSENT else [branch.value]
    for index, value in sorted(added, key=lambda pair: pair[0]):
        items.insert(index, value)


def _has_keys(item: Json, keys: Mapping[str, Json]) -> bool:
    return isinstance(item, dict) and all(key in item and is_same(item[key], value) for key, value in keys.items())


def _restore_indexed(items: list[Json], before: Sequence[str], branches: Mapping[int, _Branch]) -> None:
    """Restores items of a list without keys: equal items match first, the others match by index if that one is free."""
    free: dict[str, list[int]] = {}
    for index, item in enumerate(items):
        free.setdefault(fingerprint(item), []).append(index)
    places = [found.pop(0) if (found := free.get(mark)) else None for mark in before]
    taken = set(places)
    for index, branch in branches.items():
        place = places[index] if index < len(places) else None
        if place is None and index < len(items) and index not in taken:
            place = index
        if place is None:
            continue
        if not branch.replaces(items[place]):
            branch.restore_below(items[place])
        elif branch.value is not _ABSENT:
            items[place] = branch.value
