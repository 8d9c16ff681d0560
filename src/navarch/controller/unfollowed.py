"""Children that nobody is called for when they change, which nobody would notice."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from navarch.api import Dynamic, Kind, Object
from navarch.cache import Collection
from navarch.controller.lookup import selector_of
from navarch.observe.logs import logger

__all__ = ["Unfollowed"]

_log = logger("navarch.controller")


class Unfollowed:
    """Warns once of each kind of which children are written that the controller does not see."""

    def __init__(self) -> None:
        self._told: set[Kind] = set()

    def look_at(
        self, controller: str, kind: Kind, child: Object | Dynamic, collections: Mapping[Kind, Collection[Any]]
    ) -> None:
        """A child is about to be written."""
        if kind in self._told:
            return
        why = _why_not_seen(kind, child, collections.get(kind))
        if why:
            self._told.add(kind)
            _log.warning(why, controller=controller)


def _why_not_seen(kind: Kind, child: Object | Dynamic, collection: Collection[Any] | None) -> str:
    """Empty if it is."""
    if collection is None:
        return (
            f"{kind.kind} is written as a child, but not declared: when one is changed or deleted, nobody is called, and "
            f"the right to write it is not checked at the start; declare owns=({kind.kind}, ...), or write owned=False"
        )
    if selector_of(collection.cached.labels).matches(_labels(child)):
        return ""
    return (
        f"{kind.kind} {child.name} is written as a child, but is none of those that the controller looks at, "
        f"{collection.cached.labels}: when it is changed or deleted, nobody is called; give it these labels"
    )


def _labels(child: Object | Dynamic) -> Mapping[str, str]:
    return child.labels if isinstance(child, Object) else child.metadata.get("labels") or {}
