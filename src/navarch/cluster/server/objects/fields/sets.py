"""Sets of field paths, kept in the very form of FieldsV1: trees of path elements.

A node `{}` is a member that has nothing below it; a node with `"."` is a member and has more below; a node without is
no member itself. The root is the exception: `{}` is the empty set. Trees are never changed in place, and share parts.
Elements are always in the order in which Kubernetes writes them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, TypeAlias

from navarch.cluster.server.objects.fields.elements import canonical_element, order

Tree: TypeAlias = dict[str, Any]

LEAF: Final[Tree] = {}
SELF: Final = "."
_AFTER_FIELDS: Final = "g"


def union(left: Tree, right: Tree) -> Tree:
    """What is in either.

    >>> union({"f:a": {}}, {"f:a": {"f:b": {}}})
    {'f:a': {'.': {}, 'f:b': {}}}
    """
    if not left or left is right:
        return right
    if not right:
        return left
    both = dict(left)
    for element, node in right.items():
        mine = both.get(element)
        both[element] = node if mine is None else _node_union(mine, node)
    return both if len(both) == len(left) else _in_order(both)


def _node_union(left: Tree, right: Tree) -> Tree:
    if left is right:
        return left
    if not left:
        return as_member(right)
    return union(left, right) if right else as_member(left)


def as_member(node: Tree) -> Tree:
    """The node, as a member of its set."""
    return node if not node or SELF in node else {SELF: LEAF, **node}


def as_no_member(node: Tree) -> Tree | None:
    """Only what is below the node; None if nothing is."""
    if SELF not in node:
        return node or None
    return {element: below for element, below in node.items() if element != SELF} or None


def is_member(node: Tree) -> bool:
    """Whether the path that leads to the node is in the set."""
    return not node or SELF in node


def difference(left: Tree, right: Tree) -> Tree:
    """The members of `left` that are no members of `right`; what is below such a member stays.

    >>> difference({"f:a": {".": {}, "f:b": {}}}, {"f:a": {}})
    {'f:a': {'f:b': {}}}
    """
    rest: Tree | None = None
    for element, node in right.items():
        mine = left.get(element)
        if mine is None:
            continue
        kept = _node_difference(mine, node)
        if kept is mine:
            continue
        rest = dict(left) if rest is None else rest
        _set(rest, element, kept)
    return left if rest is None else rest


def _node_difference(left: Tree, right: Tree) -> Tree | None:
    if not right:
        return as_no_member(left)
    if not left:
        return None if SELF in right else left
    return _normal(difference(left, right))


def recursive_difference(left: Tree, right: Tree) -> Tree:
    """What is left of `left` without the members of `right` and everything below them.

    >>> recursive_difference({"f:a": {".": {}, "f:b": {}}, "f:c": {}}, {"f:a": {}})
    {'f:c': {}}
    """
    rest: Tree | None = None
    for element, node in right.items():
        mine = left.get(element)
        if mine is None:
            continue
        kept = None if is_member(node) else (mine and _normal(recursive_difference(mine, node)))
        if kept is not mine:
            rest = dict(left) if rest is None else rest
            _set(rest, element, kept)
    return left if rest is None else rest


def _set(tree: Tree, element: str, node: Tree | None) -> None:
    """Changes a tree that nobody else has yet."""
    if node is None:
        del tree[element]
    else:
        tree[element] = node


def _normal(node: Tree) -> Tree | None:
    """A root of what is below a node, as that node: nothing is no node, and only "." is a leaf."""
    if not node:
        return None
    return LEAF if len(node) == 1 and SELF in node else node


def intersection(left: Tree, right: Tree) -> Tree:
    """The members of both.

    >>> intersection({"f:a": {"f:b": {}, "f:c": {}}}, {"f:a": {".": {}, "f:b": {}}})
    {'f:a': {'f:b': {}}}
    """
    both: Tree = {}
    for element, node in left.items():
        other = right.get(element)
        if other is None:
            continue
        shared = _node_intersection(node, other)
        if shared is not None:
            both[element] = shared
    return both


def _node_intersection(left: Tree, right: Tree) -> Tree | None:
    if left is right:
        return left
    if not left:
        return LEAF if is_member(right) else None
    if not right:
        return LEAF if SELF in left else None
    return _normal(intersection(left, right))


def covers(whole: Tree, part: Tree) -> bool:
    """Whether every member of `part` is one of `whole`."""
    for element, node in part.items():
        other = whole.get(element)
        if other is None or (is_member(node) and not is_member(other)):
            return False
        if node and not covers(other, {name: below for name, below in node.items() if name != SELF}):
            return False
    return True


def has(tree: Tree, *path: str) -> bool:
    """Whether the path is a member."""
    for element in path:
        found = tree.get(element)
        if found is None:
            return False
        tree = found
    return bool(path) and is_member(tree)


def leaves(tree: Tree) -> Tree:
    """The members that have no members below them.

    >>> leaves({"f:a": {".": {}, "f:b": {}}})
    {'f:a': {'f:b': {}}}
    """
    return {element: leaves(node) if node else LEAF for element, node in tree.items() if element != SELF}


def paths(tree: Tree) -> Iterator[tuple[str, ...]]:
    """Every member: those of one level first, in order, then what is below them."""
    elements = [element for element in tree if element != SELF]
    for element in elements:
        if is_member(tree[element]):
            yield (element,)
    for element in elements:
        for below in paths(tree[element]):
            yield (element, *below)


def _in_order(tree: Tree) -> Tree:
    """The same tree with its own elements in order; what is below them is in order already."""
    elements = sorted(tree) if max(tree) < _AFTER_FIELDS else sorted(tree, key=order)
    return {element: tree[element] for element in elements}


def decoded(fields: Any) -> Tree:
    """The set that a client wrote, its elements in their canonical form; raises ValueError for what is no FieldsV1."""
    if not isinstance(fields, dict):
        raise TypeError(f"expected an object, got {type(fields).__name__}")
    tree: Tree = {}
    for element, below in fields.items():
        if element == SELF:
            continue
        canonical = canonical_element(element)
        if canonical is not None:
            tree[canonical] = _decoded_node(below)
    return _in_order(tree) if tree else tree


def _decoded_node(fields: Any) -> Tree:
    node = decoded(fields)
    return as_member(node) if SELF in fields or not node else node
