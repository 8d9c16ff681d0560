"""JSON patches (RFC 6902): computes the operations between two documents, and applies operations.

Operations are applied as the API server applies them. It departs from the RFC: an index may count from the end (-1),
`replace` of a missing member adds it, `test` for null also passes for a missing member, `copy` from a missing member
gives null, a missing `value` is null, and only `replace` and `test` reach the whole document. Two numbers are equal
only if they have the same type: 1, 1.0 and true are three values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from itertools import zip_longest
from typing import Any, Final, TypeAlias

import msgspec

from navarch.errors import PatchError

Json: TypeAlias = Any
"""None, bool, int, float, str, list and dict of these."""

_INDEX: Final = re.compile(r"[+-]?[0-9]{1,9}")
# By which an element of a list is taken for the same one, changed; in Kubernetes' lists nearly always the first.
_IDENTIFYING_MEMBERS: Final = ("name", "key", "type", "id")


def create_json_patch(before: Json, after: Json) -> list[dict[str, Json]]:
    """Returns few operations, as deep as possible, that turn `before` into `after`.

    Unchanged elements of lists are left alone, and objects are matched inside lists by their name.

    >>> create_json_patch({"ports": [80, 443], "old": 1}, {"ports": [80, 8080, 443]})
    [{'op': 'remove', 'path': '/old'}, {'op': 'add', 'path': '/ports/1', 'value': 8080}]
    """
    operations: list[dict[str, Json]] = []
    _compare(before, after, "", operations)
    return operations


def apply_json_patch(
    patch: Sequence[Json], document: Json, *, charge_copy: Callable[[int], None] | None = None
) -> Json:
    """Returns the document after the operations, applied in order; changes neither argument.

    Raises PatchError with the number of the operation that failed. `charge_copy` is called before each `copy` with the
    size in JSON of the copied value, and may raise PatchError: a document that is copied into itself doubles with every
    operation.

    >>> apply_json_patch([{"op": "add", "path": "/spec/replicas", "value": 3}], {"spec": {}})
    {'spec': {'replicas': 3}}
    """
    patched = _Patched(copy_json(document), charge_copy)
    for number, operation in enumerate(patch):
        try:
            patched.apply(operation)
        except PatchError as error:
            described = (
                f"{operation.get('op')} {operation.get('path')}" if isinstance(operation, Mapping) else operation
            )
            raise PatchError(f"operation {number} ({described}): {error}") from error
    return patched.root


def parse_pointer(pointer: str) -> list[str]:
    """Returns the unescaped member names and indices of a JSON pointer (RFC 6901).

    >>> parse_pointer("/metadata/annotations/example.com~1owner")
    ['metadata', 'annotations', 'example.com/owner']
    """
    if pointer and not pointer.startswith("/"):
        raise PatchError(f"expected a pointer that is empty or begins with '/', got {pointer!r}; write /{pointer}")
    return [part.replace("~1", "/").replace("~0", "~") for part in pointer.split("/")[1:]]


def join_pointer(*parts: str | int) -> str:
    """Returns the JSON pointer to a member or element, with its parts escaped.

    >>> join_pointer("metadata", "annotations", "example.com/owner")
    '/metadata/annotations/example.com~1owner'
    """
    return "".join(f"/{str(part).replace('~', '~0').replace('/', '~1')}" for part in parts)


def same_json(left: Json, right: Json) -> bool:
    """Returns True if two values are equal in JSON; Python's `==` confuses 1, 1.0 and True.

    >>> same_json({"a": [1]}, {"a": [1]}), same_json(1, 1.0), same_json(1, True)
    (True, False, False)
    """
    if type(left) is not type(right):
        return False
    if isinstance(left, dict):
        return left.keys() == right.keys() and all(same_json(value, right[key]) for key, value in left.items())
    if isinstance(left, list):
        return len(left) == len(right) and all(map(same_json, left, right))
    return bool(left == right)


def copy_json(value: Json) -> Json:
    """Returns a deep copy of the objects and lists.

    >>> original = {"a": [1]}
    >>> copy_json(original)["a"] is original["a"]
    False
    """
    if isinstance(value, dict):
        return {key: copy_json(member) for key, member in value.items()}
    if isinstance(value, list):
        return [copy_json(element) for element in value]
    return value


def _compare(before: Json, after: Json, path: str, operations: list[dict[str, Json]]) -> None:
    if isinstance(before, dict) and isinstance(after, dict):
        _compare_objects(before, after, path, operations)
    elif isinstance(before, list) and isinstance(after, list):
        _compare_lists(before, after, path, operations)
    elif not same_json(before, after):
        operations.append({"op": "replace", "path": path, "value": copy_json(after)})


def _compare_objects(
    before: dict[str, Json], after: dict[str, Json], path: str, operations: list[dict[str, Json]]
) -> None:
    operations.extend({"op": "remove", "path": path + join_pointer(key)} for key in before if key not in after)
    for key, value in after.items():
        if key in before:
            if before[key] is not value:  # documents may share parts
                _compare(before[key], value, path + join_pointer(key), operations)
        else:
            operations.append({"op": "add", "path": path + join_pointer(key), "value": copy_json(value)})


def _compare_lists(before: list[Json], after: list[Json], path: str, operations: list[dict[str, Json]]) -> None:
    pairs = _aligned(before, after)
    if pairs and not any(_is_same_element(old, new) for old, new in pairs):
        operations.append({"op": "replace", "path": path, "value": copy_json(after)})
        return
    position = 0
    for old, new in pairs:
        here = f"{path}/{position}"
        if not new:
            operations.append({"op": "remove", "path": here})
            continue
        if not old:
            operations.append({"op": "add", "path": here, "value": copy_json(new[0])})
        elif _is_same_element(old, new):
            _compare(old[0], new[0], here, operations)
        else:
            operations.append({"op": "replace", "path": here, "value": copy_json(new[0])})
        position += 1


_Side: TypeAlias = tuple[Json] | tuple[()]


def _aligned(before: list[Json], after: list[Json]) -> list[tuple[_Side, _Side]]:
    """Pairs old elements with new ones; one side is empty for an added or removed element."""
    old_names, new_names = list(map(_identity, before)), list(map(_identity, after))
    start = _common(old_names, new_names)
    end = _common(old_names[start:][::-1], new_names[start:][::-1])
    old_end, new_end = len(before) - end, len(after) - end
    pairs: list[tuple[_Side, _Side]] = _pairs(before[:start], after[:start])
    # Only what lies between: for many equal elements the matcher takes time in the square of their number.
    from difflib import SequenceMatcher  # noqa: PLC0415 - most processes compare no lists

    matcher = SequenceMatcher(None, old_names[start:old_end], new_names[start:new_end], autojunk=False)
    for _, old_from, old_to, new_from, new_to in matcher.get_opcodes():
        pairs += _pairs(before[start + old_from : start + old_to], after[start + new_from : start + new_to])
    return pairs + _pairs(before[old_end:], after[new_end:])


def _common(left: list[object], right: list[object]) -> int:
    """Returns the number of equal elements from the front."""
    return next(
        (index for index, (a, b) in enumerate(zip(left, right, strict=False)) if a != b), min(len(left), len(right))
    )


def _pairs(old: list[Json], new: list[Json]) -> list[tuple[_Side, _Side]]:
    return list(zip_longest(((element,) for element in old), ((element,) for element in new), fillvalue=()))


def _is_same_element(old: _Side, new: _Side) -> bool:
    """Returns True if one element is a changed form of the other: equal identity, or containers without one."""
    if not (old and new):
        return False
    both_lists = isinstance(old[0], list) and isinstance(new[0], list)
    both_objects = isinstance(old[0], dict) and isinstance(new[0], dict)
    nameless = both_objects and _name(old[0]) is _name(new[0]) is None
    return both_lists or nameless or _identity(old[0]) == _identity(new[0])


def _identity(element: Json) -> object:
    name = _name(element) if isinstance(element, dict) else None
    return name or msgspec.json.encode(element, order="deterministic")


def _name(element: dict[str, Json]) -> tuple[str, str] | None:
    for member in _IDENTIFYING_MEMBERS:
        value = element.get(member)
        if isinstance(value, str):
            return member, value
    return None


class _Patched:
    """A private copy of the document, changed in place."""

    def __init__(self, root: Json, charge_copy: Callable[[int], None] | None) -> None:
        self.root = root
        self._charge_copy = charge_copy
        self._verbs: dict[object, Callable[[Mapping[str, Json]], None]] = {
            "add": self._add,
            "remove": self._remove,
            "replace": self._replace,
            "move": self._move,
            "copy": self._copy,
            "test": self._test,
        }

    def apply(self, operation: Json) -> None:
        kind = operation.get("op") if isinstance(operation, Mapping) else None
        verb = self._verbs.get(kind) if isinstance(kind, str) else None
        if verb is None:
            raise PatchError(f"expected op to be one of {', '.join(map(str, self._verbs))}, got {kind!r}")
        verb(operation)

    def _add(self, operation: Mapping[str, Json]) -> None:
        self._put(_pointer(operation, "path"), copy_json(operation.get("value")))

    def _remove(self, operation: Mapping[str, Json]) -> None:
        self._take(_pointer(operation, "path"))

    def _replace(self, operation: Mapping[str, Json]) -> None:
        pointer, value = _pointer(operation, "path"), copy_json(operation.get("value"))
        if not pointer:
            self.root = value
            return
        container, key = self._find(pointer)
        if isinstance(container, dict):
            container[key] = value
        else:
            container[_existing(container, key)] = value

    def _move(self, operation: Mapping[str, Json]) -> None:
        value = self._take(_pointer(operation, "from"))
        self._put(_pointer(operation, "path"), value)

    def _copy(self, operation: Mapping[str, Json]) -> None:
        value = self._get(_pointer(operation, "from"))
        if self._charge_copy is not None:
            self._charge_copy(len(msgspec.json.encode(value)))
        self._put(_pointer(operation, "path"), copy_json(value))

    def _test(self, operation: Mapping[str, Json]) -> None:
        pointer, expected = _pointer(operation, "path"), operation.get("value")
        actual = self._get(pointer) if pointer else self.root
        if not same_json(actual, expected):
            raise PatchError(f"expected {_shown(expected)}, found {_shown(actual)}")

    def _get(self, pointer: str) -> Json:
        container, key = self._find(pointer)
        return container.get(key) if isinstance(container, dict) else container[_existing(container, key)]

    def _take(self, pointer: str) -> Json:
        container, key = self._find(pointer)
        if isinstance(container, list):
            return container.pop(_existing(container, key))
        if key not in container:
            raise PatchError(f"expected a member {key!r}, found none; test for it first, or leave this operation out")
        return container.pop(key)

    def _put(self, pointer: str, value: Json) -> None:
        container, key = self._find(pointer)
        if isinstance(container, dict):
            container[key] = value
        elif key == "-":
            container.append(value)
        else:
            container.insert(_within(key, len(container) + 1), value)

    def _find(self, pointer: str) -> tuple[dict[str, Json] | list[Json], str]:
        """Returns the object or list that a pointer leads into, and the last part."""
        parts = parse_pointer(pointer)
        if not parts:
            raise PatchError("expected a path into the document, got the whole document; use replace for that")
        here = self.root
        for depth, part in enumerate(parts):
            if not isinstance(here, dict | list):
                where = join_pointer(*parts[:depth]) or "the document"
                raise PatchError(f"expected an object or list at {where}, found {_shown(here)}; add it first")
            if depth < len(parts) - 1:
                here = here.get(part) if isinstance(here, dict) else here[_existing(here, part)]
        return here, parts[-1]


def _pointer(operation: Mapping[str, Json], name: str) -> str:
    pointer = operation.get(name)
    if not isinstance(pointer, str):
        raise PatchError(f"expected {name!r} to be a JSON pointer such as /spec/replicas, got {pointer!r}")
    return pointer


def _existing(elements: list[Json], key: str) -> int:
    return _within(key, len(elements))


def _within(key: str, size: int) -> int:
    """Returns the index that a part of a pointer names; a negative one counts from the end."""
    index = int(key) if _INDEX.fullmatch(key) else None
    if index is None or not -size <= index < size:
        raise PatchError(f"expected an index into a list with room for {size}, got {key!r}")
    return index % size


def _shown(value: Json) -> str:
    """Returns the type of a container instead of its content, which may be secret and long."""
    if isinstance(value, dict):
        return "an object"
    if isinstance(value, list):
        return "a list"
    return "a text" if isinstance(value, str) else msgspec.json.encode(value).decode()
