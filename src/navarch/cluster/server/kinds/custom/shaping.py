"""Defaults, nulls and unknown fields by compiled schemas: most objects have little of them, and all are looked at.

Defaults are charged to the budget of the request: a short object may have room for many that are large.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, Final, NamedTuple

from navarch.api.json_patch import copy_json
from navarch.cluster.server.wire.budget import current_budget
from navarch.cluster.server.wire.request import Json

__all__ = ["compile_filling", "compile_knowing"]

Fill = Callable[[Any], None]
Knows = Callable[[Any], bool]


class _Child(NamedTuple):
    """What becomes of a null, and of what is inside."""

    keeps_null: bool
    default: Any
    size: int
    """How many values the default has."""
    fill: Fill | None

    def copied_default(self) -> Any:
        """A copy, charged to the request."""
        current_budget().charge_nodes(self.size)
        return copy_json(self.default)


_NO_CHILD: Final = _Child(keeps_null=True, default=None, size=0, fill=None)


def compile_filling(schema: Json) -> Fill | None:
    """A function that fills in defaults, in place, and drops nulls that mean nothing; None if there is nothing to do."""
    fields = {name: _child(below) for name, below in (schema.get("properties") or {}).items()}
    values, items = schema.get("additionalProperties"), schema.get("items")
    others = _child(values) if isinstance(values, dict) else _NO_CHILD
    item = _child(items) if isinstance(items, dict) else _NO_CHILD
    if not fields and others is _NO_CHILD and item is _NO_CHILD:
        return None
    defaults = {name: child for name, child in fields.items() if child.default is not None}

    def fill(value: Any) -> None:
        if isinstance(value, dict):
            for name, child in defaults.items():
                if name not in value:
                    value[name] = child.copied_default()
            _fill_object(value, fields, others)
        elif isinstance(value, list) and item is not _NO_CHILD:
            _fill_list(value, item)

    return fill


def _child(schema: Json) -> _Child:
    default = schema.get("default")
    return _Child(bool(schema.get("nullable")), default, _size(default), compile_filling(schema))


def _size(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return 1 + sum(map(_size, inner))


def _fill_object(value: Json, fields: dict[str, _Child], others: _Child) -> None:
    dropped: list[str] = []
    for name, inner in value.items():
        kind = type(inner)
        if kind is dict or kind is list:
            below = fields.get(name, others).fill
            if below is not None:
                below(inner)
        elif inner is None:
            child = fields.get(name, others)
            if child.keeps_null:
                continue
            if child.default is None:
                dropped.append(name)
            else:
                value[name] = _filled(child)
    for name in dropped:
        del value[name]


def _fill_list(value: list[Any], item: _Child) -> None:
    for index, inner in enumerate(value):
        if inner is None and not item.keeps_null and item.default is not None:
            value[index] = _filled(item)
        elif item.fill is not None:
            item.fill(inner)


def _filled(child: _Child) -> Any:
    value = child.copied_default()
    if child.fill is not None:
        child.fill(value)
    return value


def compile_knowing(schema: Json, *, own: frozenset[str] = frozenset()) -> Knows | None:
    """A function that says whether a schema knows every field of an object or list; None where all are known.

    `own` are fields that need not be in the schema. It may say no where it would take more than a look: of objects
    inside of objects, and of what keeps some unknown fields.
    """
    if schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("x-kubernetes-embedded-resource"):
        return _is_empty
    fields = {name: compile_knowing(below) for name, below in (schema.get("properties") or {}).items()}
    names = frozenset(fields) | own
    checked = [(name, knows) for name, knows in fields.items() if knows is not None and name not in own]
    values, items = schema.get("additionalProperties"), schema.get("items")
    is_map = isinstance(values, dict)
    each_value = compile_knowing(values) if isinstance(values, dict) else None
    each_item = compile_knowing(items) if isinstance(items, dict) else _is_empty

    def knows(value: Any) -> bool:
        if type(value) is list:
            return each_item is None or _all_known(each_item, value)
        if is_map:
            return each_value is None or _all_known(each_value, value.values())
        if not names >= value.keys():
            return False
        for name, inner in checked:
            found = value.get(name)
            if (type(found) is dict or type(found) is list) and not inner(found):
                return False
        return True

    return knows


def _all_known(knows: Knows, values: Iterable[Any]) -> bool:
    """Only objects and lists have fields: the rest is not asked about."""
    return all(knows(value) for value in values if type(value) is dict or type(value) is list)


def _is_empty(value: Any) -> bool:
    return not value
