"""Replica counts and status of a Deployment, computed from its ReplicaSets."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from navarch.api import truncate_to_seconds
from navarch.cluster.controllers.workloads.pod_creation import fenceposts
from navarch.k8s.apps.v1 import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet


@dataclass(frozen=True, slots=True)
class ReplicaBounds:
    """The replicas of a Deployment, its surge and its unavailable pods, as numbers."""

    replicas: int
    surge: int
    unavailable: int

    @property
    def most(self) -> int:
        """Returns how many pods there may be at any time."""
        return self.replicas + self.surge

    @property
    def fewest_available(self) -> int:
        """Returns how many pods have to serve at any time."""
        return self.replicas - self.unavailable


@dataclass(frozen=True, slots=True)
class ReplicaSetSize:
    """A ReplicaSet: how many pods it asks for, how many of them serve, and what `ReplicaBounds.most` was when it was last sized.

    Of more pods that serve than it asks for some are about to go: they do not count.
    """

    asked: int
    available: int = 0
    most: int | None = None

    @property
    def serving(self) -> int:
        """Returns how many of its pods serve, and will."""
        return min(self.available, self.asked)

    @property
    def lacking(self) -> int:
        """Returns how many of its pods do not serve."""
        return self.asked - self.serving


def grown(bounds: ReplicaBounds, new: int, total: int) -> int:
    """The size of the new ReplicaSet, which has `new` of `total` pods: as large as the surge allows.

    >>> grown(ReplicaBounds(10, surge=3, unavailable=2), new=0, total=10)
    3
    """
    if new > bounds.replicas:
        return bounds.replicas
    room = max(bounds.most - total, 0)
    return new + min(room, bounds.replicas - new)


def shrunk(bounds: ReplicaBounds, old: Sequence[ReplicaSetSize], new: ReplicaSetSize) -> list[int]:
    """The sizes of the old ReplicaSets, the oldest first: as small as availability allows.

    Pods that do not serve go first: they are no loss, and would keep new ones from coming.
    """
    sizes = [size.asked for size in old]
    may_go = sum(sizes) + new.asked - bounds.fewest_available - new.lacking
    if may_go <= 0:
        return sizes
    sizes = _taken(sizes, [size.lacking for size in old], may_go)
    spare = sum(size.serving for size in (*old, new)) - bounds.fewest_available
    return _taken(sizes, sizes, max(spare, 0))


def _taken(sizes: Sequence[int], at_most: Sequence[int], count: int) -> list[int]:
    """The sizes after `count` were taken away, from the first on, and from each no more than it can give."""
    left = []
    for size, limit in zip(sizes, at_most, strict=True):
        taken = min(limit, count)
        count -= taken
        left.append(size - taken)
    return left


def proportional(bounds: ReplicaBounds, sizes: Sequence[ReplicaSetSize], now: int) -> list[int]:
    """The sizes of all ReplicaSets that have pods, the largest first, after the Deployment was scaled amid a rollout.

    Each grows or shrinks by its share, so that the rollout neither hurries nor falls back; what cannot be divided goes to
    the first. `now` is how many pods there are, for a ReplicaSet that does not say what it was sized for.
    """
    allowed = bounds.most if bounds.replicas else 0
    to_add, added, result = allowed - sum(size.asked for size in sizes), 0, []
    for size in sizes:
        share = _share(bounds, size, now, to_add, added)
        added += share
        result.append(size.asked + share)
    if result:
        result[0] = max(result[0] + to_add - added, 0)
    return result


def _share(bounds: ReplicaBounds, size: ReplicaSetSize, now: int, to_add: int, added: int) -> int:
    if not size.asked or to_add in {0, added}:
        return 0
    share, left = _fraction(bounds, size, now), to_add - added
    return min(share, left) if to_add > 0 else max(share, left)


def _fraction(bounds: ReplicaBounds, size: ReplicaSetSize, now: int) -> int:
    if not bounds.replicas:
        return -size.asked
    before = size.most or now
    if not before:
        return 0
    return _rounded(size.asked * bounds.most, before) - size.asked


def _rounded(numerator: int, denominator: int) -> int:
    """The nearest integer; a half goes up."""
    return (2 * numerator + denominator) // (2 * denominator)


_NO_LIMIT = 2**31 - 1
_PROGRESSING = "Progressing"
_FAILURE = "ReplicaFailure"
_SKEW_SECONDS = 1.0


def is_rolling(deployment: Deployment) -> bool:
    """Returns True if old pods go as new ones come, and not before."""
    strategy = deployment.spec.strategy
    return strategy is None or strategy.type != "Recreate"


def bounds_of(deployment: Deployment) -> ReplicaBounds:
    """Between how many pods and how many a rollout may be."""
    replicas, strategy = deployment.spec.replicas or 0, deployment.spec.strategy
    if not is_rolling(deployment):
        return ReplicaBounds(replicas, surge=0, unavailable=0)
    rolling = strategy.rolling_update if strategy else None
    surge, unavailable = fenceposts(
        rolling.max_surge if rolling else None, rolling.max_unavailable if rolling else None, replicas
    )
    return ReplicaBounds(replicas, surge=surge, unavailable=min(unavailable, replicas))


def has_deadline(deployment: Deployment) -> bool:
    """Returns True if it is told when no progress is made for too long."""
    return deployment.spec.progress_deadline_seconds not in {None, _NO_LIMIT}


def status_of(
    deployment: Deployment, replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """How many pods there are, and whether enough of them serve."""
    available = sum(each.status.available_replicas or 0 for each in replica_sets)
    asked = sum(each.spec.replicas or 0 for each in replica_sets)
    status = DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(each.status.replicas for each in replica_sets) or None,
        updated_replicas=(new.status.replicas if new else 0) or None,
        ready_replicas=sum(each.status.ready_replicas or 0 for each in replica_sets) or None,
        available_replicas=available or None,
        unavailable_replicas=max(asked - available, 0) or None,
        terminating_replicas=_terminating(replica_sets),
        collision_count=deployment.status.collision_count,
        conditions=deployment.status.conditions,
    )
    set_condition(status, _availability(available >= bounds_of(deployment).fewest_available), now)
    return status


def _terminating(replica_sets: Iterable[ReplicaSet]) -> int | None:
    """None if one that has been looked at does not say."""
    count = 0
    for each in replica_sets:
        if each.status.terminating_replicas is None and each.status.observed_generation:
            return None
        count += each.status.terminating_replicas or 0
    return count


def _availability(enough: bool) -> DeploymentCondition:
    if enough:
        return _condition("Available", "True", "MinimumReplicasAvailable", "Deployment has minimum availability.")
    return _condition(
        "Available", "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability."
    )


def _condition(kind: str, status: str, reason: str, message: str) -> DeploymentCondition:
    return DeploymentCondition(type=kind, status=status, reason=reason, message=message)


def progressing(status: str, reason: str, message: str) -> DeploymentCondition:
    """Returns True if the rollout goes on."""
    return _condition(_PROGRESSING, status, reason, message)


def set_condition(status: DeploymentStatus, condition: DeploymentCondition, now: datetime) -> None:
    """A condition that has that status for that reason already stays as it is."""
    known = _known(status, condition.type)
    if known is not None and (known.status, known.reason) == (condition.status, condition.reason):
        return
    _replace(status, condition, known, now)


def _replace(
    status: DeploymentStatus, condition: DeploymentCondition, known: DeploymentCondition | None, now: datetime
) -> None:
    moment = truncate_to_seconds(now)
    same = known is not None and known.status == condition.status
    condition.last_update_time = moment
    condition.last_transition_time = known.last_transition_time if same and known else moment
    status.conditions = [*_others(status, condition.type), condition]


def _known(status: DeploymentStatus, kind: str) -> DeploymentCondition | None:
    return next((each for each in status.conditions or () if each.type == kind), None)


def _others(status: DeploymentStatus, kind: str) -> list[DeploymentCondition]:
    return [each for each in status.conditions or () if each.type != kind]


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Returns True if all pods are new and serve."""
    counts = {status.updated_replicas or 0, status.replicas or 0, status.available_replicas or 0}
    return counts == {deployment.spec.replicas or 0}


def with_progress(
    deployment: Deployment, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> DeploymentStatus:
    """The status with what can be said of the rollout: that it is through, goes on, or has stood still for too long."""
    if not has_deadline(deployment):
        status.conditions = _others(status, _PROGRESSING) or None
        return status
    known, whose = _known(status, _PROGRESSING), _whose(deployment, new)
    through = known is not None and known.reason == "NewReplicaSetAvailable"
    if through and (status.replicas or 0) == (status.updated_replicas or 0):
        return status
    if is_complete(deployment, status):
        message = f"{whose} has successfully progressed."
        set_condition(status, progressing("True", "NewReplicaSetAvailable", message), now)
    elif _went_on(deployment.status, status):
        _replace(status, progressing("True", "ReplicaSetUpdated", f"{whose} is progressing."), known, now)
    elif _is_late(deployment, known, now):
        message = f"{whose} has timed out progressing."
        set_condition(status, progressing("False", "ProgressDeadlineExceeded", message), now)
    return status


def _whose(deployment: Deployment, new: ReplicaSet | None) -> str:
    return f'ReplicaSet "{new.name}"' if new else f'Deployment "{deployment.name}"'


def _went_on(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    return (
        (after.updated_replicas or 0) > (before.updated_replicas or 0)
        or _old(after) < _old(before)
        or (after.ready_replicas or 0) > (before.ready_replicas or 0)
        or (after.available_replicas or 0) > (before.available_replicas or 0)
    )


def _old(status: DeploymentStatus) -> int:
    return (status.replicas or 0) - (status.updated_replicas or 0)


def _is_late(deployment: Deployment, known: DeploymentCondition | None, now: datetime) -> bool:
    if known is None or known.reason == "NewReplicaSetAvailable":
        return False
    if known.reason == "ProgressDeadlineExceeded":
        return True
    return _deadline(deployment, known) < now


def _deadline(deployment: Deployment, known: DeploymentCondition) -> datetime:
    assert known.last_update_time is not None
    return known.last_update_time + timedelta(seconds=deployment.spec.progress_deadline_seconds or 0)


def seconds_to_deadline(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """After how long it is late if nothing happens; None if it cannot be."""
    known = _known(status, _PROGRESSING)
    if not has_deadline(deployment) or known is None or is_complete(deployment, status):
        return None
    if known.reason in {"ProgressDeadlineExceeded", "NewReplicaSetAvailable"}:
        return None
    return max((_deadline(deployment, known) - now).total_seconds(), 0.0) + _SKEW_SECONDS


def with_failures(
    status: DeploymentStatus, replica_sets: Sequence[ReplicaSet], new: ReplicaSet | None
) -> DeploymentStatus:
    """The status with what keeps a ReplicaSet from making its pods; the new one's trouble comes first."""
    sources = [*([new] if new else []), *replica_sets]
    failures = (each for source in sources for each in source.status.conditions or () if each.type == _FAILURE)
    failure = next(failures, None)
    known, others = _known(status, _FAILURE), _others(status, _FAILURE)
    if failure is None:
        status.conditions = others or None
    elif known is None or (known.status, known.reason) != (failure.status, failure.reason):
        condition = _condition(_FAILURE, failure.status, failure.reason or "", failure.message or "")
        condition.last_update_time = condition.last_transition_time = failure.last_transition_time
        status.conditions = [*others, condition]
    return status
