"""Computes managed fields after a create, an update or a patch."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from navarch.cluster.server.objects.fields.entries import (
    Holders,
    Holding,
    capped,
    decoded_entries,
    encoded,
    held,
    holder,
)
from navarch.cluster.server.objects.fields.fitting import fits
from navarch.cluster.server.objects.fields.kinds import NO_RESET, KindShape, OwnershipReset
from navarch.cluster.server.objects.fields.reading import UnfitError, compare_maps
from navarch.cluster.server.objects.fields.sets import LEAF, SELF, Tree, difference, union
from navarch.cluster.server.objects.fields.shapes import DEDUCED, FieldShape, MergeForm
from navarch.cluster.server.wire.request import Json

UNOWNED: Final = frozenset(
    {
        "clusterName",
        "creationTimestamp",
        "generation",
        "managedFields",
        "name",
        "namespace",
        "resourceVersion",
        "selfLink",
        "uid",
    }
)
"""Members of metadata that belong to nobody."""

NOBODYS: Final[Tree] = {
    "f:apiVersion": LEAF,
    "f:kind": LEAF,
    "f:metadata": {SELF: LEAF, **{f"f:{name}": LEAF for name in sorted(UNOWNED)}},
}
"""All fields that belong to nobody."""


def updated(
    old: Json | None,
    new: Json,
    shape: KindShape,
    *,
    manager: str,
    subresource: str = "",
    api_version: str,
    now: str,
) -> list[Json]:
    """The managed fields of `new` after `manager` made it out of `old` (None: created it).

    `new` is the object as the client wants it, with defaults, before admission and before the server sets anything.
    If it brings managed fields of its own, those are the basis: `[]` and `[{}]` forget everything.
    """
    holders = _basis(old, new, shape, subresource)
    if old is not None and not holders:
        return []
    try:
        change = FieldChange(old, new, shape, subresource)
        holders = owned_after(holders, change)
        came = change.came
    except (UnfitError, RecursionError):
        return []  # as the real server does with what it cannot make sense of
    if came:
        who = holder(manager, "Update", api_version, subresource)
        before = holders.get(who)
        fields = union(before.fields, came) if before else came
        holders[who] = Holding(fields, api_version, now)
    return encoded(capped(holders))


def _basis(old: Json | None, new: Json, shape: KindShape, subresource: str) -> Holders:
    """What was owned before: as the client says, if it says anything that makes sense."""
    before: Mapping[str, Any] = old["metadata"] if old is not None else {}
    given = (new.get("metadata") or {}).get("managedFields")
    if subresource or given is None or given == before.get("managedFields"):
        return held(before)
    if given == [{}]:
        return {}
    if given == []:
        # An empty list gets lost when the metadata of a custom object is read.
        return held(before) if shape.is_custom else {}
    return decoded_entries(given) or held(before)


class FieldChange:
    """What differs between two objects of a kind, in each of its versions: `gone` and `came` are sets of fields."""

    def __init__(self, old: Json | None, new: Json, shape: KindShape, subresource: str) -> None:
        self.shape = shape
        self._old, self._new, self._subresource = old, new, subresource
        reset = shape.reset(subresource)
        _refuse_unfit(old, new, shape, reset)
        self.gone, self.came = _differences(old, new, shape, reset)
        self._touched = {shape.api_version: union(self.gone, self.came)}
        self._came = {shape.api_version: self.came}

    def touched(self, api_version: str) -> Tree | None:
        """The fields in which the objects differ in some version; None if the kind has no such version."""
        if api_version not in self._touched and not self._look_at(api_version):
            return None
        return self._touched[api_version]

    def came_in(self, api_version: str) -> Tree:
        """The fields that came or changed, in a version that `touched` knows."""
        return self._came[api_version]

    def _look_at(self, api_version: str) -> bool:
        shape = self.shape.in_version(api_version)
        if shape is None:
            return False
        old = None if self._old is None else converted(self._old, self.shape, api_version)
        # What a write of a custom object leaves as it was, Kubernetes knows in the version of the request only.
        is_whole = shape.is_custom and not self._subresource
        reset = NO_RESET if is_whole else shape.reset(self._subresource)
        gone, came = _differences(old, converted(self._new, self.shape, api_version), shape, reset)
        self._touched[api_version], self._came[api_version] = union(gone, came), came
        return True


def converted(value: Json, shape: KindShape, api_version: str) -> Json:
    """The object in another version of its kind."""
    if api_version == shape.api_version:
        return value
    return shape.convert(value, api_version) if shape.convert else {**value, "apiVersion": api_version}


def _refuse_unfit(old: Json | None, new: Json, shape: KindShape, reset: OwnershipReset) -> None:
    """UnfitError for members of custom objects that are not compared, since the write leaves them as they were, and that
    are nothing that the schema knows.
    """
    for name in reset.dropped if shape.is_custom else ():
        member = new.get(name)
        known = shape.root.fields.get(name)
        if member is None or known is None or (old is not None and member == old.get(name)):
            continue
        if not fits(member, known[1]):
            raise UnfitError(f".{name}")


def _differences(old: Json | None, new: Json, shape: KindShape, reset: OwnershipReset) -> tuple[Tree, Tree]:
    before = shape.zero if old is None else old
    after = _without_nulls(new) if old is None and not shape.is_custom else new
    gone, came = compare_maps(ownable(before, reset.dropped), ownable(after, reset.dropped), shape.root)
    return reset.kept(gone), reset.kept(came)


def _without_nulls(value: Json) -> Json:
    """Go has nothing in a field of a new object whether it is null or not there."""
    return {name: member for name, member in value.items() if member is not None}


def ownable(value: Json, dropped: frozenset[str] = frozenset()) -> Json:
    """The object without what belongs to nobody."""
    rest = {name: member for name, member in value.items() if name not in dropped}
    rest.pop("apiVersion", None)
    rest.pop("kind", None)
    meta = rest.get("metadata")
    if isinstance(meta, dict):
        rest["metadata"] = {name: member for name, member in meta.items() if name not in UNOWNED}
    return rest


def owned_after(holders: Holders, change: FieldChange) -> Holders:
    """What is left to those who owned something before; entries of versions that are no more are dropped."""
    left: Holders = {}
    for who, holding in holders.items():
        touched = change.touched(holding.api_version)
        if touched is None:
            continue
        fields = difference(reconciled(holding, change.shape), touched)
        if fields:
            same = fields is holding.fields
            left[who] = holding if same else Holding(fields, holding.api_version, holding.time)
    return left


def reconciled(holding: Holding, shape: KindShape) -> Tree:
    """What is owned, where fields have become atomic since it was written."""
    own = shape.in_version(holding.api_version) or shape
    return _collapsed(holding.fields, own.root)


def _collapsed(tree: Tree, shape: FieldShape) -> Tree:
    changed: Tree | None = None
    for element, node in tree.items():
        if not node:
            continue
        below = shape.at(element) if element != SELF else None
        if below is None or below is DEDUCED or not below.hides_atomic:
            continue
        kept = LEAF if _is_atomic(below) else _collapsed(node, below)
        if kept is not node:
            changed = dict(tree) if changed is None else changed
            changed[element] = kept
    return changed or tree


def _is_atomic(shape: FieldShape) -> bool:
    return shape.map_form == MergeForm.ATOMIC or (
        shape.map_form == MergeForm.NONE and shape.list_form == MergeForm.ATOMIC
    )


def settled(old: Json, new: Json) -> Json:
    """`new`; with the times of its managed fields as in `old` where nothing else differs, so that it is no write."""
    before, after = _managed(old), _managed(new)
    if not after or len(before) != len(after) or before == after:
        return new
    restored = [_timed(entry, earlier.get("time")) for entry, earlier in zip(after, before, strict=True)]
    candidate = {**new, "metadata": {**new["metadata"], "managedFields": restored}}
    return candidate if candidate == old else new


def _managed(value: Json) -> list[Json]:
    found: list[Json] = value["metadata"].get("managedFields") or []
    return found


def _timed(entry: Json, time: str | None) -> Json:
    timed = {name: time if name == "time" else member for name, member in entry.items()}
    if time is None:
        timed.pop("time", None)
    elif "time" not in entry:
        timed["time"] = time
    return timed
