"""Which names of a CustomResourceDefinition are accepted: none may be in use by another one of its group."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from navarch.cluster.server.kinds.custom.conditions import (
    ESTABLISHED,
    NAMES_ACCEPTED,
    condition,
    find_condition,
    is_true,
    with_condition,
)
from navarch.cluster.server.wire.request import Json

__all__ = ["named_status"]

_REASONS: Final = {
    "plural": "PluralConflict",
    "singular": "SingularConflict",
    "shortNames": "ShortNamesConflict",
    "kind": "KindConflict",
    "listKind": "ListKindConflict",
}
_NOT_ACCEPTED: Final = condition(ESTABLISHED, False, "NotAccepted", "not all names are accepted")
_INSTALLING: Final = condition(ESTABLISHED, False, "Installing", "the initial names have been accepted")


def named_status(definition: Json, others: Iterable[Json], now: str) -> Json:
    """The status of a CRD after its names were held against those of the others of its group."""
    status = definition["status"]
    accepted, fault = _accepted(definition["spec"]["names"], status.get("acceptedNames") or {}, others)
    status = {**status, "acceptedNames": accepted}
    names = fault or condition(NAMES_ACCEPTED, True, "NoConflicts", "no conflicts found")
    status = with_condition(status, names, now)
    if is_true(status, ESTABLISHED):
        return status
    if fault is None:
        return with_condition(status, _INSTALLING, now)
    return status if find_condition(status, ESTABLISHED) else with_condition(status, _NOT_ACCEPTED, now)


def _accepted(wanted: Json, known: Json, others: Iterable[Json]) -> tuple[Json, Json | None]:
    """The names that are accepted now, and the last conflict."""
    resources, kinds = _in_use(others)
    accepted: Json = {"plural": known.get("plural", ""), "kind": known.get("kind", ""), **known}
    fault: Json | None = None
    for name, reason in _REASONS.items():
        used = kinds if name in {"kind", "listKind"} else resources
        taken = [each for each in _listed(wanted, name) if each not in _listed(known, name) and each in used]
        if taken:
            said = [f'"{each}" is already in use' for each in taken]
            fault = condition(NAMES_ACCEPTED, False, reason, said[0] if len(said) == 1 else f"[{', '.join(said)}]")
        else:
            _take(accepted, name, wanted)
    _take(accepted, "categories", wanted)
    return accepted, fault


def _take(accepted: Json, name: str, wanted: Json) -> None:
    if name in wanted:
        accepted[name] = wanted[name]
    else:
        accepted.pop(name, None)


def _listed(names: Json, name: str) -> list[str]:
    found = names.get(name)
    if isinstance(found, list):
        return found
    return [found] if found else []


def _in_use(others: Iterable[Json]) -> tuple[set[str], set[str]]:
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        names = other.get("status", {}).get("acceptedNames") or {}
        resources.update(*(_listed(names, name) for name in ("plural", "singular", "shortNames")))
        kinds.update(*(_listed(names, name) for name in ("kind", "listKind")))
    return resources, kinds
