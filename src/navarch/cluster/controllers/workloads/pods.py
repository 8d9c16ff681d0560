"""Predicates on the status of a pod, and the order in which surplus pods are deleted."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import datetime, timedelta
from functools import cmp_to_key
from typing import Any

from navarch.api import Object
from navarch.api.integers import parse_int64
from navarch.cache import Cached
from navarch.k8s.core.v1 import Pod, PodCondition

_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {"Pending": 0, "Unknown": 1, "Running": 2}
_UNKNOWN_PHASE = 0


def least_loss_first(pods: Iterable[Pod], related: Iterable[Pod], now: datetime) -> list[Pod]:
    """The pods in the order in which they should be deleted.

    Those that do not run yet come first, then the cheaper ones, then those that share their node with most of `related`,
    then those that were ready, or are there, for a shorter time: within a factor of two it is left to chance.
    """
    crowds = Counter(pod.spec.node_name for pod in related if is_active(pod))
    return sorted(pods, key=cmp_to_key(_comparison(crowds, now)))


def _comparison(crowds: Counter[str | None], now: datetime) -> Callable[[Pod, Pod], int]:
    def compare(one: Pod, other: Pod) -> int:
        difference = _difference(_standing(one, crowds), _standing(other, crowds))
        difference = difference or _by_age(ready_since(one), ready_since(other), one, other, now)
        difference = difference or _difference(_restarts(other), _restarts(one))
        return difference or _by_age(
            one.metadata.creation_timestamp, other.metadata.creation_timestamp, one, other, now
        )

    return compare


def _standing(pod: Pod, crowds: Counter[str | None]) -> tuple[bool, int, bool, int, int]:
    """What counts before any age does; the smaller goes first."""
    phase = _PHASES.get(pod.status.phase or "", _UNKNOWN_PHASE)
    return bool(pod.spec.node_name), phase, is_ready(pod), _cost(pod), -crowds[pod.spec.node_name]


def _cost(pod: Pod) -> int:
    """What the user says a deletion costs; a text that is no number counts as none."""
    text = pod.annotations.get(_COST, "")
    digits = text.removeprefix("-")
    return (parse_int64(text) or 0) if digits.isdecimal() else 0


def _restarts(pod: Pod) -> tuple[int, int]:
    """Of its containers, and of its sidecars."""
    sidecars = {each.name for each in pod.spec.init_containers or () if each.restart_policy == "Always"}
    containers = pod.status.container_statuses or ()
    helpers = [each for each in pod.status.init_container_statuses or () if each.name in sidecars]
    return (
        max((each.restart_count for each in containers), default=0),
        max((each.restart_count for each in helpers), default=0),
    )


def _by_age(first: datetime | None, second: datetime | None, one: Pod, other: Pod, now: datetime) -> int:
    """The younger goes first; of two whose ages are alike, the one whose uid is smaller, which is as good as chance."""
    if first == second:
        return 0
    if first is None or second is None:
        return -1 if first is None else 1
    difference = _difference(_magnitude(now, first), _magnitude(now, second))
    return difference or _difference(one.metadata.uid, other.metadata.uid)


def _magnitude(now: datetime, then: datetime) -> int:
    nanoseconds = (now - then).total_seconds() * 1e9
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _difference(one: Any, other: Any) -> int:
    return int(one > other) - int(one < other)


PODS = Cached(Pod, views=16384)
"""The pods of a whole cluster of this kind fit: whoever has thousands of them looks at all of them again and again."""

_TERMINAL = frozenset({"Succeeded", "Failed"})


def is_deleting(found: Object) -> bool:
    """Returns True if somebody has asked for the object to go."""
    return found.metadata.deletion_timestamp is not None


def is_terminal(pod: Pod) -> bool:
    """Returns True if all of its containers have ended for good."""
    return pod.status.phase in _TERMINAL


def is_active(pod: Pod) -> bool:
    """Returns True if it runs, or will."""
    return not is_deleting(pod) and not is_terminal(pod)


def is_terminating(pod: Pod) -> bool:
    """Returns True if it is to go, and may still be running."""
    return is_deleting(pod) and not is_terminal(pod)


def is_ready(pod: Pod) -> bool:
    """Returns True if it can serve."""
    ready = _ready(pod)
    return ready is not None and ready.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """Since when it has been ready; None if it is not, or nobody has said."""
    ready = _ready(pod)
    return ready.last_transition_time if ready is not None and ready.status == "True" else None


def is_available(pod: Pod, min_ready_seconds: int | None, now: datetime) -> bool:
    """Returns True if it has been ready for long enough."""
    if not min_ready_seconds:
        return is_ready(pod)
    since = ready_since(pod)
    return since is not None and since + timedelta(seconds=min_ready_seconds) <= now


def seconds_until_available(pods: Iterable[Pod], min_ready_seconds: int | None, now: datetime) -> float | None:
    """When the next of these pods will have been ready for long enough; None if there is none to wait for."""
    if not min_ready_seconds:
        return None
    due = (since + timedelta(seconds=min_ready_seconds) - now for pod in pods if (since := ready_since(pod)))
    return min((left.total_seconds() for left in due if left > timedelta()), default=None)


def _ready(pod: Pod) -> PodCondition | None:
    for condition in pod.status.conditions or ():
        if condition.type == "Ready":
            return condition
    return None
