"""Managed fields between an object and its scale subresource, which knows of nothing but the replicas."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any, Final

import msgspec

from navarch.cluster.server.objects.fields.applying import applied
from navarch.cluster.server.objects.fields.entries import Holders, Holding, encoded, held
from navarch.cluster.server.objects.fields.kinds import KindShape, builtin_shape
from navarch.cluster.server.objects.fields.managers import updated
from navarch.cluster.server.objects.fields.sets import LEAF, Tree, difference, has
from navarch.cluster.server.wire.request import Json
from navarch.k8s.published import published

__all__ = ["ScaleApply", "applied_scale", "entries_from_scale", "entries_of_scale", "updated_scale"]

SCALE_VERSION: Final = "autoscaling/v1"
_REPLICAS: Final = ("f:spec", "f:replicas")

Paths = Mapping[str, tuple[str, ...]]


def entries_of_scale(entries: list[Json], replicas: Paths) -> list[Json]:
    """The managed fields of the Scale of an object that has `entries`.

    `replicas` gives the path elements of the replicas by apiVersion: `{"apps/v1": ("f:spec", "f:replicas")}`.
    """
    owners: Holders = {}
    for who, holding in held({"managedFields": entries}).items():
        path = replicas.get(holding.api_version)
        if path and has(holding.fields, *path):
            owners[who] = Holding(_set_of(_REPLICAS), SCALE_VERSION, holding.time)
    return encoded(owners)


def entries_from_scale(entries: list[Json], scale: list[Json], replicas: Paths, api_version: str) -> list[Json]:
    """The managed fields of an object with `entries`, after those of its Scale have become `scale`.

    Whoever writes a Scale owns the replicas of the object, and like on a real server no time is noted.
    """
    parent, owners = held({"managedFields": entries}), held({"managedFields": scale})
    result: Holders = {}
    for who, holding in parent.items():
        path = replicas.get(holding.api_version)
        if path is None or not has(holding.fields, *path) or owners.pop(who, None) is not None:
            result[who] = holding
        elif left := difference(holding.fields, _set_of(path)):
            result[who] = Holding(left, holding.api_version, holding.time)
    for who, holding in owners.items():
        if has(holding.fields, *_REPLICAS):
            result[who] = Holding(_set_of(replicas[api_version]), api_version, None)
    return encoded(result)


def updated_scale(live: Json, wanted: Json, *, manager: str, now: str) -> list[Json]:
    """The managed fields of a Scale after `manager` made `wanted` out of `live`, which has its own.

    An updater of the object is another one than an updater of its Scale, since they write different versions.
    """
    return updated(
        live, wanted, _scale_shape(), manager=manager, subresource="scale", api_version=SCALE_VERSION, now=now
    )


class ScaleApply(msgspec.Struct, frozen=True):
    """Who applies a Scale, and how."""

    manager: str
    force: bool
    now: str


def applied_scale(live: Json, patch: Json, by: ScaleApply) -> Json:
    """The Scale, which has its managed fields, after `patch` was applied to it."""
    return applied(
        live,
        patch,
        _scale_shape(),
        manager=by.manager,
        force=by.force,
        subresource="scale",
        api_version=SCALE_VERSION,
        now=by.now,
    )


@cache
def _scale_shape() -> KindShape:
    return builtin_shape("autoscaling", "v1", "Scale", published().schema("io.k8s.api.autoscaling.v1.Scale"))


def _set_of(path: tuple[str, ...]) -> Tree:
    tree: Any = LEAF
    for element in reversed(path):
        tree = {element: tree}
    return dict(tree)
