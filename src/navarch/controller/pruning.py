"""Children that are no longer wanted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from navarch.api import Kind
from navarch.client.target import Readable, kind_of
from navarch.controller.applied import Child
from navarch.controller.children import Deletion
from navarch.controller.reach import Reach
from navarch.errors import InvalidValueError

__all__ = ["Prune", "kinds_to_prune", "refuse_duplicates", "refuse_undeclared", "unwanted"]

Prune = bool | tuple[Readable[Any], ...]
"""Whether to delete what is no longer wanted: of all kinds in `owns`, of none, or of these."""


def kinds_to_prune(reach: Reach, prune: Prune) -> frozenset[Kind]:
    """The kinds; raises `InvalidValueError` for one that is not among `owns`."""
    if isinstance(prune, bool):
        return reach.owned if prune else frozenset()
    kinds = frozenset(kind_of(what) for what in prune)
    for kind in kinds:
        _refuse_undeclared(reach, kind, "prune")
    return kinds


def refuse_undeclared(reach: Reach, children: Iterable[Child], prune: Prune) -> None:
    """A kind that is not among `owns` is not looked at when children are pruned: they would be left behind unnoticed."""
    if prune is True:
        for child in children:
            _refuse_undeclared(reach, child.kind, str(child))


def _refuse_undeclared(reach: Reach, kind: Kind, where: str) -> None:
    if kind not in reach.owned:
        raise InvalidValueError(
            f"{where}: expected a kind that the controller owns, got {kind}; what is no longer wanted of it could not be "
            f"found: declare owns=({kind.kind}, ...), or write prune=False"
        )


def refuse_duplicates(children: Iterable[Child]) -> None:
    """Each child is named once: of two, nobody could say which one is meant."""
    seen: set[Child] = set()
    for child in children:
        if child in seen:
            raise InvalidValueError(f"expected each object once, got {child} twice; give it another name")
        seen.add(child)


def unwanted(reach: Reach, owner_uid: str, kinds: Iterable[Kind], wanted: set[Child]) -> list[Deletion]:
    """What the owner controls of these kinds and is not wanted; what is on its way out already is left alone."""
    return [
        Deletion(child, uid=entry.uid)
        for kind in kinds
        for entry in reach.collections[kind].owned_by(owner_uid)
        if (child := Child(kind, entry.key)) not in wanted
        and not entry.deleting
        and entry.controller is not None
        and entry.controller.uid == owner_uid
    ]
