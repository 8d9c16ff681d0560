"""The status of a CustomResourceDefinition: its conditions, and the names that are accepted."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from navarch.cluster.server.wire.request import Json

NAMES_ACCEPTED = "NamesAccepted"
ESTABLISHED = "Established"
TERMINATING = "Terminating"


def condition(kind: str, status: bool, reason: str, message: str) -> Json:
    """Returns a condition without its transition time."""
    return {"type": kind, "status": "True" if status else "False", "reason": reason, "message": message}


def find_condition(status: Json, kind: str) -> Json | None:
    """Returns the condition of a type."""
    return next((known for known in status.get("conditions") or () if known["type"] == kind), None)


def is_true(status: Json, kind: str) -> bool:
    """Tells whether the condition of a type exists and is True."""
    found = find_condition(status, kind)
    return found is not None and found["status"] == "True"


def with_condition(status: Json, wanted: Json, now: str) -> Json:
    """Returns the status with a condition; the transition time changes with the condition's status."""
    known = find_condition(status, wanted["type"])
    time = known["lastTransitionTime"] if known and known["status"] == wanted["status"] else now
    head = {"type": wanted["type"], "status": wanted["status"], "lastTransitionTime": time}
    made = {**head, "reason": wanted["reason"], "message": wanted["message"]}
    others = list(status.get("conditions") or ())
    if known is None:
        return {**status, "conditions": [*others, made]}
    return {**status, "conditions": [made if each is known else each for each in others]}


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
    """Returns the status of a CRD after a comparison of its names with the other CRDs of its group."""
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
    """Returns the accepted names and the last conflict."""
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
