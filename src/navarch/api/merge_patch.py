"""JSON merge patches (RFC 7386): objects are merged, null removes a member, every other value replaces.

As on the API server, null members are also removed from objects inside the lists of a patch.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from navarch.api.json_patch import Json, copy_json, join_pointer, same_json
from navarch.errors import PatchError

_PLAIN = re.compile(r"[\w$-]+\Z")


def differing_paths(old: Any, new: Any, path: str = "") -> Iterator[str]:
    """Yields the deepest paths at which two JSON values differ, in order; never the values, which may be secrets.

    Compares lists of equal length item by item; other lists differ as a whole.

    >>> old = {"spec": {"size": 1, "ports": [80]}, "labels": {"example.com/a": "x"}}
    >>> new = {"spec": {"size": 2, "ports": [80, 81]}, "labels": {}}
    >>> list(differing_paths(old, new))
    ['labels["example.com/a"]', 'spec.ports', 'spec.size']
    """
    if isinstance(old, dict) and isinstance(new, dict):
        for name in sorted(old.keys() | new.keys()):
            if name in old and name in new:
                yield from differing_paths(old[name], new[name], _below(path, name))
            else:
                yield _below(path, name)
    elif isinstance(old, list) and isinstance(new, list) and len(old) == len(new):
        for index, (before, after) in enumerate(zip(old, new, strict=True)):
            yield from differing_paths(before, after, f"{path}[{index}]")
    elif old != new or isinstance(old, bool) is not isinstance(new, bool):
        yield path


def _below(path: str, name: str) -> str:
    if not _PLAIN.match(name):
        return f'{path}["{name}"]'
    return f"{path}.{name}" if path else name


def create_merge_patch(before: Json, after: Json) -> Json:
    """Returns the patch that turns `before` into `after`; `{}` for two equal objects.

    Raises PatchError for a member that becomes null, which a merge patch cannot express.

    >>> create_merge_patch({"a": 1, "b": {"c": 2, "d": 3}}, {"b": {"c": 2, "d": 4}, "e": []})
    {'a': None, 'b': {'d': 4}, 'e': []}
    """
    return _difference(before, after, ())


def apply_merge_patch(patch: Json, document: Json) -> Json:
    """Returns the document after the patch; changes neither argument.

    >>> apply_merge_patch({"a": None, "b": {"d": 4}}, {"a": 1, "b": {"c": 2}})
    {'b': {'c': 2, 'd': 4}}
    """
    if not isinstance(patch, dict):
        return _without_nulls(patch)
    merged = copy_json(document) if isinstance(document, dict) else {}
    _merge_into(merged, patch)
    return merged


def _merge_into(target: dict[str, Json], patch: dict[str, Json]) -> None:
    for key, value in patch.items():
        current = target.get(key)
        if value is None:
            target.pop(key, None)
        elif isinstance(value, dict) and isinstance(current, dict):
            _merge_into(current, value)
        else:
            target[key] = _without_nulls(value)


def _without_nulls(value: Json) -> Json:
    """Returns a copy without null members; null elements of lists stay."""
    if isinstance(value, dict):
        return {key: _without_nulls(member) for key, member in value.items() if member is not None}
    if isinstance(value, list):
        return [_without_nulls(element) for element in value]
    return value


def _difference(before: Json, after: Json, path: tuple[str | int, ...]) -> Json:
    if not (isinstance(before, dict) and isinstance(after, dict)):
        _refuse_nulls(after, path)
        return copy_json(after)
    patch: dict[str, Json] = {key: None for key in before if key not in after}
    for key, value in after.items():
        if key in before and same_json(before[key], value):
            continue
        if value is None:
            raise _inexpressible((*path, key))
        patch[key] = _difference(before.get(key), value, (*path, key))
    return patch


def _refuse_nulls(value: Json, path: tuple[str | int, ...]) -> None:
    if isinstance(value, dict):
        for key, member in value.items():
            if member is None:
                raise _inexpressible((*path, key))
            _refuse_nulls(member, (*path, key))
    elif isinstance(value, list):
        for index, element in enumerate(value):
            _refuse_nulls(element, (*path, index))


def _inexpressible(path: tuple[str | int, ...]) -> PatchError:
    return PatchError(f"expected a value at {join_pointer(*path)}, got null; use a JSON patch to set a member to null")
