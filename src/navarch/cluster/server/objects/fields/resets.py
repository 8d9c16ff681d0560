"""Kubernetes' reset fields in managed fields: a write leaves them as they were, so its manager does not own them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from navarch.cluster.server.objects.fields.sets import LEAF, Tree, recursive_difference
from navarch.cluster.server.objects.types import FieldReset


class Reset(msgspec.Struct, frozen=True):
    """The fields that a manager cannot own. `dropped` are members of the object that need not be compared at all."""

    dropped: frozenset[str]
    excluded: Tree
    only: Tree | None = None

    def kept(self, tree: Tree) -> Tree:
        """Returns the fields of the set that can be owned."""
        if self.only is not None:
            tree = _matching(tree, self.only)
        return recursive_difference(tree, self.excluded) if self.excluded else tree


NO_RESET: Final = Reset(frozenset(), {})
"""Every field can be owned."""
_STATUS_OF_CUSTOM: Final = FieldReset({"f:metadata": LEAF, "f:spec": LEAF})
_CUSTOM_WITH_STATUS: Final = {"": FieldReset({"f:status": LEAF}), "status": _STATUS_OF_CUSTOM}
_CUSTOM: Final = {"status": _STATUS_OF_CUSTOM}


def compiled_resets(declared: Mapping[str, FieldReset]) -> dict[str, Reset]:
    """Returns the resets of a kind by subresource; "" is the object itself."""
    return {subresource: _compiled(reset) for subresource, reset in declared.items()}


def custom_resets(*, has_status: bool) -> dict[str, Reset]:
    """Returns the resets of a custom kind."""
    return compiled_resets(_CUSTOM_WITH_STATUS if has_status else _CUSTOM)


def _compiled(reset: FieldReset) -> Reset:
    dropped = frozenset(element[2:] for element, node in reset.excluded.items() if not node)
    return Reset(dropped, dict(reset.excluded), None if reset.only is None else dict(reset.only))


def _matching(tree: Tree, pattern: Tree) -> Tree:
    """The members on the way of a pattern, and everything behind its ends; "*" stands for any element."""
    found: Tree = {}
    for element, node in tree.items():
        further: Any = pattern.get(element, pattern.get("*"))
        if element == "." or further is None:
            continue
        kept = _matching(node, further) if node and further else node
        if kept or not node:
            found[element] = {".": LEAF, **kept} if "." in node and further else kept
        elif "." in node:
            found[element] = LEAF
    return found
