"""Merges an applied object into the live one, and removes fields from an object."""

from __future__ import annotations

from collections import deque
from typing import Any

from navarch.api.json_patch import copy_json
from navarch.cluster.server.objects.fields.reading import item_element
from navarch.cluster.server.objects.fields.sets import Tree, as_member, is_member
from navarch.cluster.server.objects.fields.shapes import FieldShape

GONE = object()


def merged(live: Any, patch: Any, shape: FieldShape) -> Any:
    """The live value with what the patch sets; shares nothing with the live one.

    Nothing is removed: null leaves an object or a list as it is.
    """
    if shape.by_member and isinstance(live, dict) and live and _is_or_null(patch, dict):
        return _merged_map(live, patch or {}, shape)
    if shape.by_item and isinstance(live, list) and live and _is_or_null(patch, list):
        return _merged_list(live, patch or [], shape)
    return patch


def _is_or_null(value: Any, kind: type) -> bool:
    return value is None or type(value) is kind


def _merged_map(live: dict[str, Any], patch: dict[str, Any], shape: FieldShape) -> dict[str, Any]:
    result: dict[str, Any] = {}
    for name, value in live.items():
        result[name] = merged(value, patch[name], shape.member(name)[1]) if name in patch else copy_json(value)
    return result | {name: value for name, value in patch.items() if name not in live}


def _merged_list(live: list[Any], patch: list[Any], shape: FieldShape) -> list[Any]:
    """The items in the order of the patch where it says something, else of the live list."""
    assert shape.items is not None
    wanted = {item_element(item, shape): item for item in patch}
    names = [item_element(item, shape) for item in live]
    present: dict[str, Any] = {}
    for name, item in zip(names, live, strict=True):
        # What is there twice is not merged with anything.
        present[name] = None if name in present else item
    result = []
    for name, place in _interleaved(names, list(wanted)):
        if name not in wanted:
            result.append(copy_json(live[place]))
        elif present.get(name) is None:
            result.append(wanted[name])
        else:
            result.append(merged(present[name], wanted[name], shape.items))
    return result


def _interleaved(live: list[str], wanted: list[str]) -> list[tuple[str, int]]:
    """The names of both lists, each wanted one once, with the place in the live list of those that only it has."""
    order: list[tuple[str, int]] = []
    here, there = set(live), set(wanted)
    shared = deque(name for name in wanted if name in here)
    done: set[str] = set()
    left = right = 0
    while left < len(live) or right < len(wanted):
        if left < len(live) and right < len(wanted) and live[left] != wanted[right]:
            if live[left] in there and shared and shared[0] != live[left]:
                left += 1  # its turn comes with the patch's order
                continue
        elif left < len(live) and right < len(wanted):
            order.append((wanted[right], -1))
            done.add(wanted[right])
            left, right = left + 1, right + 1
            _ = shared and shared.popleft()
            continue
        if left < len(live):
            if live[left] not in there:
                order.append((live[left], left))
                left += 1
                continue
            if live[left] in done:
                left += 1
        if right < len(wanted):
            order.append((wanted[right], -1))
            done.add(wanted[right])
            if shared and shared[0] == wanted[right]:
                shared.popleft()
            right += 1
    return order


def with_named_members(tree: Tree, shape: FieldShape | None) -> Tree:
    """The set, with the declared fields on the way to its members as members too."""
    result: Tree = {}
    for element, node in tree.items():
        if not node or shape is None:
            result[element] = node
            continue
        below = shape.at(element) if element[0] in "fk" else None
        inner = with_named_members(node, below)
        result[element] = as_member(inner) if shape.is_field(element) else inner
    return result


def without(value: Any, tree: Tree, shape: FieldShape) -> Any:
    """The value without the members of the set; what is left empty by that becomes null."""
    if isinstance(value, dict):
        if not shape.by_member:
            return None
        rest = {name: kept for name, member in value.items() if (kept := _rest(member, tree, shape, name)) is not GONE}
        return rest or None
    if isinstance(value, list):
        if not shape.by_item:
            return None
        assert shape.items is not None
        kept_items = [_rest_of_item(item, tree, shape) for item in value]
        return [item for item in kept_items if item is not GONE] or None
    return value


def _rest(member: Any, tree: Tree, shape: FieldShape, name: str) -> Any:
    element, below = shape.member(name)
    return _kept(member, tree.get(element), below)


def _rest_of_item(item: Any, tree: Tree, shape: FieldShape) -> Any:
    assert shape.items is not None
    return _kept(item, tree.get(item_element(item, shape)), shape.items)


def _kept(value: Any, node: Tree | None, shape: FieldShape) -> Any:
    if node is None:
        return value
    return GONE if is_member(node) else without(value, node, shape)


def without_nulls(value: Any, shape: FieldShape) -> Any:
    """The value without the members of typed objects that are null: a built-in kind has no such thing.

    In a map of texts null is the empty text.
    """
    if isinstance(value, dict) and shape.others is not None and shape.others.scalar == "string":
        return {name: "" if member is None else member for name, member in value.items()}
    if isinstance(value, dict) and shape.fields:
        return {
            name: without_nulls(member, shape.member(name)[1]) for name, member in value.items() if member is not None
        }
    if isinstance(value, list) and shape.items is not None:
        return [without_nulls(item, shape.items) for item in value]
    return value
