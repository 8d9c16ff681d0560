"""When a pod that failed is replaced: later each time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

from navarch.k8s.core.v1 import ContainerStatus, Pod

_FIRST_SECONDS = 10
_LONGEST_SECONDS = 600
_MOST_DOUBLINGS = 6


def delay_of_pods(succeeded: Sequence[Pod], failed: Sequence[Pod], now: datetime) -> float:
    """How many seconds from now a pod may be made: failures since the last success count."""
    last_success = max(map(finished_at, succeeded), default=None)
    failures = [pod for pod in failed if last_success is None or finished_at(pod) > last_success]
    return delay_left(len(failures), max(map(finished_at, failed), default=now), now)


def delay_left(failures: int, last: datetime, now: datetime) -> float:
    """What is left of the delay after so many failures, the last of which was then; doubled each time."""
    if not failures:
        return 0.0
    seconds = min(_FIRST_SECONDS << min(failures - 1, _MOST_DOUBLINGS), _LONGEST_SECONDS)
    return max(seconds - (now - last).total_seconds(), 0.0)


def finished_at(pod: Pod) -> datetime:
    """When its last container ended; as far as can be told, when it stopped being ready, or was to go."""
    ended = _last_end(pod.status.container_statuses or ())
    if ended is not None:
        return ended
    for condition in pod.status.conditions or ():
        if condition.type == "Ready" and condition.status == "False" and condition.last_transition_time:
            return condition.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    assert metadata.creation_timestamp is not None
    return metadata.creation_timestamp


def _last_end(containers: Iterable[ContainerStatus]) -> datetime | None:
    """None if one of them has not ended."""
    last = None
    for container in containers:
        ended = container.state.terminated if container.state else None
        if ended is None or ended.finished_at is None:
            return None
        last = ended.finished_at if last is None else max(last, ended.finished_at)
    return last
