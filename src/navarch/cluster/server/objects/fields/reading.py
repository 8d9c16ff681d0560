"""Reads the field set of an object, and the fields in which two objects differ."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.cluster.server.objects.fields.elements import key_element, order, quoted, value_element
from navarch.cluster.server.objects.fields.sets import LEAF, SELF, Tree, as_member, as_no_member, union
from navarch.cluster.server.objects.fields.shapes import FieldShape, MergeForm


class UnfitError(ValueError):
    """A value that does not fit its shape so badly that its fields have no names."""


class Several(list[Any]):
    """Items of a list that have the same keys."""


def set_of(value: Mapping[str, Any], shape: FieldShape) -> Tree:
    """Every field that an applied object sets.

    >>> from navarch.cluster.server.objects.fields.shapes import DEDUCED
    >>> set_of({"spec": {"replicas": 1, "empty": {}}}, DEDUCED)
    {'f:spec': {'.': {}, 'f:empty': {}, 'f:replicas': {}}}
    """
    fields = shape.fields
    found: Tree = {}
    for name in sorted(value):
        child = value[name]
        known = fields.get(name)
        kind = type(child)
        if kind is not dict and kind is not list:
            found[known[0] if known is not None else f"f:{name}"] = LEAF
            continue
        element, below = known or shape.member(name)
        node = _node_of(child, below)
        if known is None or child == {}:
            node = LEAF if node is None else as_member(node)
        if node is not None:
            found[element] = node
    return found


def _node_of(value: Any, shape: FieldShape) -> Tree | None:
    """The node of a field; None where nothing in it is owned (as in a list of items that is empty)."""
    kind = type(value)
    if kind is dict:
        return (set_of(value, shape) or None) if shape.by_member else LEAF
    if kind is list and shape.by_item:
        return _items_of(value, shape)
    return LEAF


def _items_of(items: list[Any], shape: FieldShape) -> Tree | None:
    below = shape.items
    assert below is not None
    found: Tree = {}
    for element, item in by_element(items, shape).items():
        node = _node_of(item, below) if type(item) is not Several else None
        found[element] = LEAF if node is None else as_member(node)
    return found or None


def added(value: Any, shape: FieldShape) -> Tree:
    """The node of a value that was not there before: each place in it, itself too."""
    if not value:
        return LEAF
    kind = type(value)
    if kind is dict:
        return _added_map(value, shape) if shape.by_member else LEAF
    return _added_items(value, shape) if kind is list and shape.by_item else LEAF


def _added_map(value: dict[str, Any], shape: FieldShape) -> Tree:
    node: Tree = {SELF: LEAF}
    fields = shape.fields
    for name in sorted(value):
        child = value[name]
        element, below = fields.get(name) or shape.member(name)
        kind = type(child)
        node[element] = added(child, below) if kind is dict or kind is list else LEAF
    return node


def _added_items(value: list[Any], shape: FieldShape) -> Tree:
    below = shape.items
    assert below is not None
    node: Tree = {SELF: LEAF}
    for element, item in by_element(value, shape).items():
        node[element] = added(item, below) if type(item) is not Several else LEAF
    return node


def by_element(items: list[Any], shape: FieldShape) -> dict[str, Any]:
    """The items of a list by their path elements, in order; those that share one as `Several`."""
    prefix, key = shape.key_prefix, shape.keys[0] if shape.keys else ""
    found: dict[str, Any] = {}
    for item in items:
        known_by = item.get(key) if prefix and type(item) is dict else None
        element = f"{prefix}{quoted(known_by)}}}" if type(known_by) is str else item_element(item, shape)
        if element not in found:
            found[element] = item
        elif type(found[element]) is Several:
            found[element].append(item)
        else:
            found[element] = Several((found[element], item))
    return {element: found[element] for element in sorted(found, key=order)} if len(found) > 1 else found


def item_element(item: Any, shape: FieldShape) -> str:
    """The path element of an item; raises UnfitError if it has none."""
    if shape.list_form == MergeForm.SET:
        if isinstance(item, dict):
            raise UnfitError("associative list without keys has an element that's a map type")
        if isinstance(item, list):
            raise UnfitError("not supported: associative list with lists as elements")
        if item is None:
            raise UnfitError("associative list without keys has an element that's an explicit null")
        return value_element(item)
    if item is None:
        raise UnfitError("associative list with keys may not have a null element")
    if not isinstance(item, dict):
        raise UnfitError("associative list with keys may not have non-map elements")
    return _keyed(item, shape)


def _keyed(item: dict[str, Any], shape: FieldShape) -> str:
    defaults = shape.key_defaults
    keys = [(key, item[key] if key in item else defaults[key]) for key in shape.keys if key in item or key in defaults]
    if not keys:
        names = " ".join(f'"{key}"' for key in shape.keys)
        raise UnfitError(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return key_element(keys)


def compare_maps(old: dict[str, Any], new: dict[str, Any], shape: FieldShape) -> tuple[Tree, Tree]:
    """The fields of `old` that are gone in `new`, and those that came or changed, member by member."""
    gone: Tree = {}
    came: Tree = {}
    fields = shape.fields
    for name in sorted(new):
        value = new[name]
        element, below = fields.get(name) or shape.member(name)
        if name not in old:
            came[element] = added(value, below)
        elif not same(old[name], value, below):
            _note(element, _compare(old[name], value, below), gone, came)
    missing = old.keys() - new.keys()
    return _with_missing(gone, old, missing, shape) if missing else gone, came


def _with_missing(gone: Tree, old: dict[str, Any], missing: set[str], shape: FieldShape) -> Tree:
    members = {name: shape.member(name) for name in sorted(missing)}
    return union(gone, {element: added(old[name], below) for name, (element, below) in members.items()})


def _note(element: str, differences: tuple[Tree | None, Tree | None], gone: Tree, came: Tree) -> None:
    if differences[0] is not None:
        gone[element] = differences[0]
    if differences[1] is not None:
        came[element] = differences[1]


def _compare(old: Any, new: Any, shape: FieldShape) -> tuple[Tree | None, Tree | None]:
    """The nodes of what is gone and of what came, for two values that differ; null is like an empty object or list."""
    if shape.by_member and _are(old, new, dict):
        gone, came = compare_maps(old or {}, new or {}, shape)
        return gone or None, came or None
    if shape.by_item and _are(old, new, list):
        return _compare_items(old or [], new or [], shape)
    if type(old) is type(new):
        return None, LEAF
    return as_no_member(added(old, shape)), added(new, shape)


def _are(old: Any, new: Any, kind: type) -> bool:
    """Whether both are of the kind or null, and one of them is not empty."""
    return bool(old or new) and (old is None or type(old) is kind) and (new is None or type(new) is kind)


def _compare_items(old: list[Any], new: list[Any], shape: FieldShape) -> tuple[Tree | None, Tree | None]:
    assert shape.items is not None
    before, after = by_element(old, shape), by_element(new, shape)
    gone: Tree = {}
    came: Tree = {}
    for element, item in after.items():
        if element not in before:
            came[element] = LEAF if isinstance(item, Several) else added(item, shape.items)
        elif not same(before[element], item, shape.items):
            _note(element, _compare_item(before[element], item, shape.items), gone, came)
    left = {element: item for element, item in before.items() if element not in after}
    missing = {
        element: LEAF if isinstance(item, Several) else added(item, shape.items) for element, item in left.items()
    }
    return union(gone, missing) or None, came or None


def _compare_item(old: Any, new: Any, shape: FieldShape) -> tuple[Tree | None, Tree | None]:
    """As `_compare`; items that share their keys count as one that is owned as a whole."""
    several_before, several_after = isinstance(old, Several), isinstance(new, Several)
    if several_before and several_after:
        return None, LEAF
    if several_before:
        return LEAF, added(new, shape)
    return (added(old, shape), LEAF) if several_after else _compare(old, new, shape)


def same(old: Any, new: Any, shape: FieldShape) -> bool:
    """Whether two values are equal as Kubernetes sees it: 1 is 1.0, but not true."""
    return bool(old == new) and (shape.typed or _same(old, new))


def _same(old: Any, new: Any) -> bool:
    if isinstance(old, dict):
        return all(_same(value, new[name]) for name, value in old.items())
    if isinstance(old, list):
        return all(map(_same, old, new))
    return isinstance(old, bool) is isinstance(new, bool)
