"""The conditions of a CustomResourceDefinition."""

from __future__ import annotations

from navarch.cluster.server.wire.request import Json

__all__ = ["ESTABLISHED", "NAMES_ACCEPTED", "TERMINATING", "condition", "find_condition", "is_true", "with_condition"]

NAMES_ACCEPTED = "NamesAccepted"
ESTABLISHED = "Established"
TERMINATING = "Terminating"


def condition(kind: str, status: bool, reason: str, message: str) -> Json:
    """A condition without its time."""
    return {"type": kind, "status": "True" if status else "False", "reason": reason, "message": message}


def find_condition(status: Json, kind: str) -> Json | None:
    """The condition of that type."""
    return next((known for known in status.get("conditions") or () if known["type"] == kind), None)


def is_true(status: Json, kind: str) -> bool:
    """Whether the condition of that type is there and true."""
    found = find_condition(status, kind)
    return found is not None and found["status"] == "True"


def with_condition(status: Json, wanted: Json, now: str) -> Json:
    """The status with a condition; its time is that of the last change of its status."""
    known = find_condition(status, wanted["type"])
    time = known["lastTransitionTime"] if known and known["status"] == wanted["status"] else now
    head = {"type": wanted["type"], "status": wanted["status"], "lastTransitionTime": time}
    made = {**head, "reason": wanted["reason"], "message": wanted["message"]}
    others = list(status.get("conditions") or ())
    if known is None:
        return {**status, "conditions": [*others, made]}
    return {**status, "conditions": [made if each is known else each for each in others]}
