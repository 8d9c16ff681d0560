"""`metadata.managedFields`: who owns which fields, as a list on the wire and by manager in memory."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final, NamedTuple

import msgspec

from navarch.cluster.server.objects.fields.sets import Tree, decoded, union
from navarch.cluster.server.wire.request import Json
from navarch.cluster.server.wire.times import read_time

_MOST_UPDATERS: Final = 10
_ANCIENT: Final = "ancient-changes"
_OPERATIONS: Final = frozenset({"Apply", "Update"})


class Holder(NamedTuple):
    """Who owns fields. One who applies is the same in all versions: `api_version` is empty."""

    operation: str
    manager: str
    api_version: str
    subresource: str


class Holding(NamedTuple):
    """What somebody owns, in which version, since when. `entry` is its form on the wire, if it is known."""

    fields: Tree
    api_version: str
    time: str | None
    entry: Json | None = None


Holders = dict[Holder, Holding]


def holder(manager: str, operation: str, api_version: str, subresource: str) -> Holder:
    """The one who does the operation now."""
    return Holder(operation, manager or "unknown", "" if operation == "Apply" else api_version, subresource)


def held(meta: Mapping[str, Any]) -> Holders:
    """What is owned by whom, from an object as it is stored."""
    return {_holder_of(entry): _holding_of(entry) for entry in meta.get("managedFields") or ()}


def _holder_of(entry: Json) -> Holder:
    operation = entry["operation"]
    version = "" if operation == "Apply" else entry["apiVersion"]
    return Holder(operation, entry.get("manager", ""), version, entry.get("subresource", ""))


def _holding_of(entry: Json) -> Holding:
    return Holding(entry.get("fieldsV1") or {}, entry["apiVersion"], entry.get("time"), entry)


def decoded_entries(entries: Any) -> Holders | None:
    """What a client says is owned by whom; None if it makes no sense, and then it is not taken."""
    try:
        return held({"managedFields": [_checked(entry) for entry in entries]})
    except (TypeError, ValueError, KeyError, msgspec.DecodeError):
        return None


def _checked(entry: Json) -> Json:
    if entry["operation"] not in _OPERATIONS or not entry["apiVersion"] or entry["fieldsType"] != "FieldsV1":
        raise ValueError("expected an operation, a version and the type FieldsV1")
    checked = {name: str(entry[name]) for name in ("manager", "operation", "apiVersion") if entry.get(name)}
    if entry.get("time"):
        checked["time"] = read_time(entry["time"]).text()
    subresource = {"subresource": str(entry["subresource"])} if entry.get("subresource") else {}
    return {**checked, "fieldsType": "FieldsV1", "fieldsV1": decoded(entry.get("fieldsV1") or {}), **subresource}


def encoded(holders: Holders) -> list[Json]:
    """The list as it is stored: appliers first, then by time and name."""
    return [holding.entry or _entry(who, holding) for who, holding in sorted(holders.items(), key=_place)]


def _place(item: tuple[Holder, Holding]) -> tuple[str, ...]:
    who, holding = item
    return who.operation, holding.time or "", who.manager, holding.api_version, who.subresource


def _entry(who: Holder, holding: Holding) -> Json:
    entry: Json = {"manager": who.manager, "operation": who.operation, "apiVersion": holding.api_version}
    if holding.time is not None:
        entry["time"] = holding.time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = holding.fields
    if who.subresource:
        entry["subresource"] = who.subresource
    return entry


def capped(holders: Holders) -> Holders:
    """The same with at most ten that update: of more, the oldest of each version become one."""
    updaters = [item for item in holders.items() if item[0].operation == "Update"]
    surplus = len(updaters) - _MOST_UPDATERS
    if surplus <= 0:
        return holders
    kept = dict(holders)
    oldest: dict[str, list[Holder]] = {}
    for who, holding in sorted(updaters, key=_age):
        if surplus <= 0:
            break
        same_version = oldest.setdefault(holding.api_version, [])
        surplus -= bool(same_version)
        same_version.append(who)
    for api_version, several in oldest.items():
        if len(several) > 1:
            _merge_ancient(kept, api_version, several)
    return kept


def _age(item: tuple[Holder, Holding]) -> tuple[str, str]:
    who, holding = item
    names = {"manager": who.manager, "operation": who.operation, "apiVersion": who.api_version}
    return holding.time or "", str(msgspec.json.encode({**names, "subresource": who.subresource}))


def _merge_ancient(holders: Holders, api_version: str, several: list[Holder]) -> None:
    """Moves what several own, the oldest first, to the manager of ancient changes."""
    first, *others = several
    bucket = Holder("Update", _ANCIENT, api_version, "")
    moved = [holders.pop(who) for who in others]
    before = holders.get(bucket) or holders.pop(first)
    fields = _union_of([before.fields, *(holding.fields for holding in moved)])
    holders[bucket] = Holding(fields, api_version, moved[-1].time)


def _union_of(trees: list[Tree]) -> Tree:
    """What is in any of them, two by two: a union copies what it begins with."""
    while len(trees) > 1:
        trees = [union(*trees[at : at + 2]) if at + 1 < len(trees) else trees[at] for at in range(0, len(trees), 2)]
    return trees[0]
