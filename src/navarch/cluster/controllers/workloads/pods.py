"""What a pod's status says about it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime, timedelta

from navarch.api import Object
from navarch.cache import Cached
from navarch.k8s.core.v1 import Pod, PodCondition

PODS = Cached(Pod, views=16384)
"""The pods of a whole cluster of this kind fit: whoever has thousands of them looks at all of them again and again."""

_TERMINAL = frozenset({"Succeeded", "Failed"})


def is_deleting(found: Object) -> bool:
    """Whether somebody has asked for the object to go."""
    return found.metadata.deletion_timestamp is not None


def is_terminal(pod: Pod) -> bool:
    """Whether all of its containers have ended for good."""
    return pod.status.phase in _TERMINAL


def is_active(pod: Pod) -> bool:
    """Whether it runs, or will."""
    return not is_deleting(pod) and not is_terminal(pod)


def is_terminating(pod: Pod) -> bool:
    """Whether it is to go, and may still be running."""
    return is_deleting(pod) and not is_terminal(pod)


def is_ready(pod: Pod) -> bool:
    """Whether it can serve."""
    ready = _ready(pod)
    return ready is not None and ready.status == "True"


def ready_since(pod: Pod) -> datetime | None:
    """Since when it has been ready; None if it is not, or nobody has said."""
    ready = _ready(pod)
    return ready.last_transition_time if ready is not None and ready.status == "True" else None


def is_available(pod: Pod, min_ready_seconds: int | None, now: datetime) -> bool:
    """Whether it has been ready for long enough."""
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
