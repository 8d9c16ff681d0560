"""Finds members that a JSON text has more than once, and the value that Go reads from such a text.

Each function takes time in proportion to the text. Paths are written only for what is reported, and of that no more than
Kubernetes reports: a path is as long as a client makes its names.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator
from itertools import islice
from typing import Any, Final

import msgspec

from navarch.cluster.server.wire.request import Json

MOST_FAULTS: Final = 100
"""How many strict decoding errors Kubernetes collects."""


class _Repeating(dict[str, Any]):
    """An object of a JSON text that has some names more than once."""

    repeated: tuple[str, ...] = ()


def duplicate_paths(body: bytes) -> list[str]:
    """Returns the paths of members that come more than once, at most `MOST_FAULTS`.

    Most bodies are written as their value is written again: nothing of them got lost.

    >>> duplicate_paths(b'{"a": [{"b": 1, "b": 2}]}')
    ['a[0].b']
    """
    if msgspec.json.encode(msgspec.json.decode(body)) == body.rstrip():
        return []
    return list(islice(_repeated_paths(json.loads(body, object_pairs_hook=_object), []), MOST_FAULTS))


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) == len(pairs):
        return value
    repeating = _Repeating(value)
    repeating.repeated = tuple(name for name, count in Counter(name for name, _ in pairs).items() if count > 1)
    return repeating


def _repeated_paths(value: Any, path: list[str]) -> Iterator[str]:
    if isinstance(value, _Repeating):
        yield from (_written([*path, f".{name}"]) for name in value.repeated)
    for part, item in _members(value):
        path.append(part)
        yield from _repeated_paths(item, path)
        path.pop()


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    """The objects and lists inside of an object or a list, each with its part of a path."""
    if isinstance(value, dict):
        return ((f".{name}", item) for name, item in value.items() if isinstance(item, (dict, list)))
    if isinstance(value, list):
        return ((f"[{index}]", item) for index, item in enumerate(value) if isinstance(item, (dict, list)))
    return ()


def _written(path: list[str]) -> str:
    return "".join(path).removeprefix(".")


def merged_duplicates(body: bytes) -> Json:
    """Returns the value that Go reads into a typed object: a second object of a name adds to the first.

    >>> merged_duplicates(b'{"a": {"b": 1}, "a": {"c": 2}}')
    {'a': {'b': 1, 'c': 2}}
    """
    found: Json = json.loads(body, object_pairs_hook=_merged)
    return found


def _merged(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value: dict[str, Any] = {}
    _add(value, pairs)
    return value


def _add(value: dict[str, Any], pairs: Iterable[tuple[str, Any]]) -> None:
    """Into the object itself: what was there before is not looked at again."""
    for name, member in pairs:
        before = value.get(name)
        if isinstance(before, dict) and isinstance(member, dict):
            _add(before, member.items())
        else:
            value[name] = member


class _Pairs(list[tuple[str, Any]]):
    """An object of a JSON text, with all that is in it."""


def faults_in_order(body: bytes, unknown: Iterable[str]) -> list[str]:
    """Returns what is unknown and what comes twice, in the order in which Go comes upon it, at most `MOST_FAULTS`.

    Go does not look into the unknown. `unknown` are the paths of unknown fields.

    >>> faults_in_order(b'{"a": 1, "x": {"y": 1, "y": 2}, "a": 2}', ["x"])
    ['unknown field "x"', 'duplicate field "a"']
    """
    decoded = json.loads(body, object_pairs_hook=_Pairs)
    found = _faults(decoded, [], frozenset(islice(unknown, MOST_FAULTS)))
    return list(dict.fromkeys(islice(found, MOST_FAULTS)))


def _faults(value: Any, path: list[str], unknown: frozenset[str]) -> Iterator[str]:
    """`unknown` are the paths below the value."""
    if isinstance(value, _Pairs):
        yield from _faults_of_object(value, path, unknown)
    elif isinstance(value, list):
        by_index = _by_index(unknown)
        for index, item in enumerate(value):
            if isinstance(item, list):
                path.append(f"[{index}]")
                yield from _faults(item, path, by_index.get(index, frozenset()))
                path.pop()


def _faults_of_object(pairs: _Pairs, path: list[str], unknown: frozenset[str]) -> Iterator[str]:
    seen: Counter[str] = Counter()
    for name, item in pairs:
        seen[name] += 1
        if name in unknown:
            if seen[name] == 1:
                yield f'unknown field "{_written([*path, f".{name}"])}"'
            continue
        if seen[name] == 2:
            yield f'duplicate field "{_written([*path, f".{name}"])}"'
        if isinstance(item, list):
            path.append(f".{name}")
            yield from _faults(item, path, _below(unknown, name))
            path.pop()


def _below(unknown: frozenset[str], name: str) -> frozenset[str]:
    """The unknown paths below a member: those of an object without their dot."""
    if not unknown:
        return unknown
    return frozenset(
        each[len(name) :].removeprefix(".") for each in unknown if each.startswith((f"{name}.", f"{name}["))
    )


def _by_index(unknown: frozenset[str]) -> dict[int, frozenset[str]]:
    """The unknown paths below each item of a list."""
    found: dict[int, set[str]] = {}
    for each in unknown:
        index, bracket, rest = each.removeprefix("[").partition("]")
        if bracket and index.isdecimal():
            found.setdefault(int(index), set()).add(rest.removeprefix("."))
    return {index: frozenset(rests) for index, rests in found.items()}
