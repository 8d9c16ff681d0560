"""Server-side apply: merges an applied object into the live one, and computes the owners of its fields."""

from __future__ import annotations

from typing import Any, Final, NamedTuple

import msgspec

from navarch.api.json_patch import copy_json
from navarch.api.strconv import go_quoted
from navarch.cluster.server.objects.fields.elements import shown
from navarch.cluster.server.objects.fields.entries import Holder, Holders, Holding, encoded, held, holder
from navarch.cluster.server.objects.fields.fitting import fits, misfits, said
from navarch.cluster.server.objects.fields.kinds import KindShape
from navarch.cluster.server.objects.fields.managers import NOBODYS, FieldChange, converted, owned_after
from navarch.cluster.server.objects.fields.merging import merged, with_named_members, without, without_nulls
from navarch.cluster.server.objects.fields.reading import UnfitError, compare_maps, set_of
from navarch.cluster.server.objects.fields.sets import Tree, covers, difference, has, intersection, paths, union
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.status_errors import StatusError, bad_request

LAST_APPLIED_MANAGER: Final = "kubectl"
ANNOTATION: Final = "kubectl.kubernetes.io/last-applied-configuration"
_MOST_BYTES: Final = 256 * 1024


class FieldConflict(NamedTuple):
    """A field that another one owns."""

    who: Holder
    holding: Holding
    path: tuple[str, ...]


def refused(conflicts: list[FieldConflict]) -> StatusError:
    """409, with every field."""
    causes = [
        {
            "reason": "FieldManagerConflict",
            "message": f"conflict with {_name(conflict)}",
            "field": _shown_path(conflict),
        }
        for conflict in conflicts
    ]
    return StatusError(409, "Conflict", _message(conflicts), details={"causes": causes})


def _message(conflicts: list[FieldConflict]) -> str:
    if len(conflicts) == 1:
        only = conflicts[0]
        return f"Apply failed with 1 conflict: conflict with {_name(only)}: {_shown_path(only)}"
    lines: list[str] = []
    for who in sorted({conflict.who: None for conflict in conflicts}, key=_sort_key):
        theirs = [conflict for conflict in conflicts if conflict.who == who]
        lines.append(f"conflicts with {_name(theirs[0])}:")
        lines += [f"- {_shown_path(conflict)}" for conflict in theirs]
    return f"Apply failed with {len(conflicts)} conflicts: " + "\n".join(lines)


def _sort_key(who: Holder) -> tuple[str, ...]:
    return who.manager, who.operation, who.api_version, who.subresource


def _name(conflict: FieldConflict) -> str:
    who = conflict.who
    name = go_quoted(who.manager)
    if who.subresource:
        name += f" with subresource {go_quoted(who.subresource)}"
    return f"{name} using {conflict.holding.api_version}" if who.operation == "Update" else name


def _shown_path(conflict: FieldConflict) -> str:
    return "".join(map(shown, conflict.path))


def unexpected_conflicts(conflicts: list[FieldConflict], live: Json, shape: KindShape) -> list[FieldConflict]:
    """The conflicts about fields that were not applied by the client before, with the values that they still have."""
    own = _still_applied(live, shape)
    return conflicts if own is None else [each for each in conflicts if not has(own, *each.path)]


def _still_applied(live: Json, shape: KindShape) -> Tree | None:
    last = _last_applied(live)
    if last is None or last.get("apiVersion") != shape.api_version:
        return None
    if not (fits(last, shape.root) and fits(live, shape.root)):
        return None
    gone, came = compare_maps(last, live, shape.root)
    return difference(difference(set_of(last, shape.root), came), gone)


def _last_applied(live: Json) -> Json | None:
    noted = _annotations(live).get(ANNOTATION)
    try:
        found: Any = msgspec.json.decode(noted) if noted else None
    except msgspec.DecodeError:
        return None
    return found if isinstance(found, dict) else None


def _annotations(value: Json) -> dict[str, str]:
    return (value.get("metadata") or {}).get("annotations") or {}


def refresh_last_applied(result: Json, patch: Json) -> None:
    """Notes in the annotation, if there is one, what is applied now."""
    if not _annotations(result).get(ANNOTATION):
        return
    annotations = {**_annotations(result), ANNOTATION: _noted(patch)}
    if sum(len(name) + len(text.encode()) for name, text in annotations.items()) > _MOST_BYTES:
        del annotations[ANNOTATION]
    result["metadata"] = {**result["metadata"], "annotations": annotations}


def _noted(patch: Json) -> str:
    meta = patch.get("metadata") or {}
    annotations = {name: text for name, text in (meta.get("annotations") or {}).items() if name != ANNOTATION}
    plain = {name: member for name, member in meta.items() if name != "annotations"}
    body = {**patch, "metadata": {**plain, "annotations": annotations} if annotations else plain}
    return msgspec.json.encode(body, order="sorted").decode() + "\n"


def applied(
    live: Json | None,
    patch: Json,
    shape: KindShape,
    *,
    manager: str,
    force: bool,
    subresource: str = "",
    api_version: str,
    now: str,
) -> Json:
    """The object after `manager` applied `patch` to it, with its managed fields; without defaults.

    It shares nothing with `live`, which is None if there is no such object yet. Raises StatusError: for fields that others
    own (409, unless `force`), a wrong kind, managed fields in the patch, or one that does not fit the schema.
    """
    _check_kind(patch, shape)
    apply = _Apply(live, patch, shape, holder(manager, "Apply", api_version, subresource), api_version, now)
    try:
        result = apply.run(force=force, migrates=manager == LAST_APPLIED_MANAGER)
    except RecursionError:
        raise bad_request("exceeded max depth") from None
    except UnfitError as error:
        # Only what got into the store by another way than this server can be like that.
        raise StatusError(500, "", f"failed to create typed live object ({_kind_text(shape)}): {error}") from None
    if manager == LAST_APPLIED_MANAGER:
        refresh_last_applied(result, patch)
    return result


def _check_kind(patch: Json, shape: KindShape) -> None:
    api_version, kind = str(patch.get("apiVersion", "")), str(patch.get("kind", ""))
    if (api_version, kind) != (shape.api_version, shape.kind):
        group, _, version = api_version.rpartition("/")
        raise bad_request(f"invalid object type: {group}/{version}, Kind={kind}")


class _Apply(msgspec.Struct):
    """One application of a patch."""

    live: Json | None
    patch: Json
    shape: KindShape
    who: Holder
    api_version: str
    now: str

    def run(self, *, force: bool, migrates: bool) -> Json:
        before = self._holders_before()
        self._check_patch()
        base = self.live if self.live is not None else self._empty()
        result = merged(base, self.patch, self.shape.root)
        last, wanted = before.get(self.who), self._fields()
        holders = {**before, self.who: Holding(wanted, self.api_version, None)}
        result = _Pruning(self.shape, holders, self.who, self.api_version).pruned(result, last)
        change = FieldChange(self.live, result, self.shape, self.who.subresource)
        others = {who: holding for who, holding in before.items() if who != self.who}
        if not force:
            self._refuse_conflicts(others, change, migrates)
        holders = owned_after(others, change)
        if fields := difference(wanted, NOBODYS):
            holders[self.who] = Holding(fields, self.api_version, self._time(result, last))
        return self._with_holders(result, holders)

    def _time(self, result: Json, last: Holding | None) -> str | None:
        """Since when the fields are owned: an apply that changes nothing leaves that as it was."""
        if self.live is None or result != self.live:
            return self.now
        return last.time if last else None

    def _empty(self) -> Json:
        names = {"apiVersion": self.shape.api_version, "kind": self.shape.kind}
        return {**names, **copy_json(self.shape.zero)}

    def _holders_before(self) -> Holders:
        """What is owned; all of an object that has no managed fields belongs to one who was there before."""
        if self.live is None:
            return {}
        found = held(self.live.get("metadata") or {})
        if found:
            return found
        change = FieldChange(None, self.live, self.shape, self.who.subresource)
        first = holder("before-first-apply", "Update", self.api_version, self.who.subresource)
        return {first: Holding(change.came, self.api_version, self.now)} if change.came else {}

    def _check_patch(self) -> None:
        meta = self.patch.get("metadata")
        if isinstance(meta, dict) and isinstance(meta.get("managedFields"), list):
            raise bad_request("metadata.managedFields must be nil")
        if not fits(self.patch, self.shape.root):
            named = meta if isinstance(meta, dict) else {}
            namespace, name = (_text(named.get(part)) for part in ("namespace", "name"))
            where = f"{namespace}/{name}; {_kind_text(self.shape)}"
            faults = said(misfits(self.patch, self.shape.root))
            raise StatusError(500, "", f"failed to create typed patch object ({where}): {faults}")

    def _fields(self) -> Tree:
        """What is applied, with the fields that belong to nobody: they hold on to what is around them."""
        return self.shape.reset(self.who.subresource).kept(set_of(self.patch, self.shape.root))

    def _refuse_conflicts(self, others: Holders, change: FieldChange, migrates: bool) -> None:
        conflicts = _conflicts(others, change)
        if conflicts and migrates and self.live is not None:
            conflicts = unexpected_conflicts(conflicts, self.live, self.shape)
        if conflicts:
            raise refused(conflicts)

    def _with_holders(self, result: Json, holders: Holders) -> Json:
        if not self.shape.is_custom:
            result = without_nulls(result, self.shape.root)
        meta = {
            name: member
            for name, member in (result.get("metadata") or {}).items()
            if name != "managedFields" and member is not None
        }
        if holders:
            meta["managedFields"] = encoded(holders)
        return {**result, "metadata": meta}


def _text(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _kind_text(shape: KindShape) -> str:
    return f"{shape.group}/{shape.version}, Kind={shape.kind}"


def _conflicts(others: Holders, change: FieldChange) -> list[FieldConflict]:
    found = []
    for who, holding in others.items():
        if change.touched(holding.api_version) is None:
            continue
        wanted = intersection(holding.fields, change.came_in(holding.api_version))
        found += [FieldConflict(who, holding, path) for path in paths(wanted)]
    return found


class _Pruning:
    """Takes out what a manager applied before, applies no more, and nobody else owns."""

    def __init__(self, shape: KindShape, holders: Holders, who: Holder, api_version: str) -> None:
        self._shape = shape
        self._holders = holders
        self._who = who
        self._api_version = api_version

    def pruned(self, result: Json, last: Holding | None) -> Json:
        """The merged object without it."""
        if last is None or not last.fields:
            return result
        if last.api_version == self._api_version and covers(self._holders[self._who].fields, last.fields):
            return result
        shape = self._shape.in_version(last.api_version)
        if shape is None:
            return result
        whole = converted(result, self._shape, last.api_version)
        rest = self._without_last(whole, last, shape)
        back = converted(rest, shape, self._api_version)
        return {**result, **back} if back is not rest else back

    def _without_last(self, whole: Json, last: Holding, shape: KindShape) -> Json:
        root = shape.root
        last_fields = with_named_members(last.fields, root)
        everything = with_named_members(set_of(whole, root), root)
        rest = without(whole, last_fields, root) or {}
        owned = self._owned_in(last.api_version)
        kept = union(with_named_members(set_of(rest, root), root), with_named_members(owned, root))
        rest = without(whole, difference(everything, kept), root) or {}
        rest = self._with_owned_elsewhere(whole, rest, last, shape)
        gone = difference(everything, with_named_members(set_of(rest, root), root))
        left: Any = without(whole, intersection(gone, last_fields), root)
        return left or {}

    def _owned_in(self, api_version: str) -> Tree:
        owned: Tree = {}
        for holding in self._holders.values():
            if holding.api_version == api_version:
                owned = union(owned, holding.fields)
        return owned

    def _with_owned_elsewhere(self, whole: Json, rest: Json, last: Holding, shape: KindShape) -> Json:
        """Puts back what is owned in other versions of the kind."""
        for api_version in {holding.api_version for holding in self._holders.values()} - {last.api_version}:
            other = self._shape.in_version(api_version)
            if other is None:
                continue
            there, left = converted(whole, shape, api_version), converted(rest, shape, api_version)
            kept = union(
                with_named_members(set_of(left, other.root), other.root),
                with_named_members(self._owned_in(api_version), other.root),
            )
            everything = with_named_members(set_of(there, other.root), other.root)
            back = without(there, difference(everything, kept), other.root) or {}
            rest = converted(back, other, last.api_version)
        return rest
