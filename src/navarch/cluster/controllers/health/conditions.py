"""What is to be said of a node, and the taints that follow from it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from navarch.k8s.core.v1 import Node, NodeCondition, Taint

NOT_READY: Final = "node.kubernetes.io/not-ready"
UNREACHABLE: Final = "node.kubernetes.io/unreachable"
OUT_OF_SERVICE: Final = "node.kubernetes.io/out-of-service"
_UNSCHEDULABLE: Final = "node.kubernetes.io/unschedulable"
_BY_CONDITION: Final = {
    ("Ready", "False"): NOT_READY,
    ("Ready", "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OWN: Final = frozenset({*_BY_CONDITION.values(), _UNSCHEDULABLE})
_REPORTED: Final = ("Ready", "MemoryPressure", "DiskPressure", "PIDPressure")
_NO_SCHEDULE: Final = "NoSchedule"
_NO_EXECUTE: Final = "NoExecute"


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthOptions:
    """How long things may take, in seconds.

    Nodes are looked at every so often (`look`). One that was silent for so long (`silence`), or has not reported at all
    since it came (`startup`), is lost. Pods that nobody looks after are looked for every so often (`sweep`); those of a
    node that is gone go after `quarantine`. Of pods that have ended, so many are kept.
    """

    look: float = 5.0
    silence: float = 50.0
    startup: float = 60.0
    sweep: float = 20.0
    quarantine: float = 40.0
    most_ended: int = 12500


def ready_status(node: Node) -> str:
    """`True`, `False` or `Unknown`; empty if the node has never said."""
    return next((each.status for each in node.status.conditions or () if each.type == "Ready"), "")


def is_ready(node: Node) -> bool:
    """Whether the node says that it is."""
    return ready_status(node) == "True"


def silent(node: Node, now: datetime) -> list[NodeCondition]:
    """The conditions of a node that has not been heard of for too long: nothing is known of what it reported."""
    known = {each.type: each for each in node.status.conditions or ()}
    for type_ in _REPORTED:
        old = known.get(type_)
        if old is None:
            known[type_] = NodeCondition(
                type=type_,
                status="Unknown",
                reason="NodeStatusNeverUpdated",
                message="Kubelet never posted node status.",
                last_heartbeat_time=node.metadata.creation_timestamp,
                last_transition_time=now,
            )
        elif old.status != "Unknown":
            known[type_] = NodeCondition(
                type=type_,
                status="Unknown",
                reason="NodeStatusUnknown",
                message="Kubelet stopped posting node status.",
                last_heartbeat_time=old.last_heartbeat_time,
                last_transition_time=now,
            )
    return list(known.values())


def tainted(node: Node, now: datetime, *, evicts: bool) -> list[Taint]:
    """The taints that the node should have: those of others, and those that follow from its conditions.

    With `evicts`, pods that do not tolerate that a node is not ready are to leave it.
    """
    before = node.spec.taints or []
    wanted = [(_UNSCHEDULABLE, _NO_SCHEDULE)] if node.spec.unschedulable else []
    for condition in node.status.conditions or ():
        if (key := _BY_CONDITION.get((condition.type, condition.status))) is not None:
            wanted.append((key, _NO_SCHEDULE))
            if evicts and key in {NOT_READY, UNREACHABLE}:
                wanted.append((key, _NO_EXECUTE))
    if not ready_status(node):
        wanted.append((NOT_READY, _NO_SCHEDULE))
    kept = [each for each in before if not _is_own(each) or (each.key, each.effect) in wanted]
    present = {(each.key, each.effect) for each in kept}
    return [*kept, *_new((each for each in wanted if each not in present), now)]


def _is_own(taint: Taint) -> bool:
    return taint.key in _OWN and taint.effect in {_NO_SCHEDULE, _NO_EXECUTE}


def _new(wanted: Iterable[tuple[str, str]], now: datetime) -> Iterable[Taint]:
    return [Taint(key=key, effect=effect, time_added=now) for key, effect in wanted]
