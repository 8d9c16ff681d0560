"""The StatefulSet controller: pods in order, or in parallel."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Container, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial

from navarch._base.gather import gather_all
from navarch.cluster.controllers.workloads.adoption import adopters, claimed, selector_of
from navarch.cluster.controllers.workloads.pod_creation import gathered, is_ending, part_of, slow_start_batches
from navarch.cluster.controllers.workloads.pods import (
    is_available,
    is_deleting,
    is_ready,
    is_terminal,
    seconds_until_available,
)
from navarch.cluster.controllers.workloads.revision_history import History, forget_versions, history_of, template_of
from navarch.cluster.controllers.workloads.statefulsets.pod_members import (
    StatefulPods,
    is_member,
    new_pod,
    ordinal_of,
    ordinals_of,
    revision_of,
)
from navarch.controller import Context, Result, any_change
from navarch.errors import NavarchError
from navarch.k8s.apps.v1 import ControllerRevision, StatefulSet, StatefulSetStatus
from navarch.k8s.core.v1 import PersistentVolumeClaim, Pod
from navarch.operator import Operator

_HASH = "controller.kubernetes.io/hash"
_AT_ONCE = 64
_BURST = 500


def declare_stateful_sets(operator: Operator) -> None:
    """Adds the controller of StatefulSets."""
    operator.controller(
        StatefulSet,
        owns=(Pod, ControllerRevision),
        watches={Pod: adopters(StatefulSet)},
        reads=(PersistentVolumeClaim,),
        when=any_change,
        until_gone=True,
        name="statefulset",
    )(_reconcile)


async def _reconcile(stateful_set: StatefulSet, ctx: Context) -> Result | None:
    if not await gathered(ctx, stateful_set, stateful_set.status.replicas):
        return None
    selector = selector_of(stateful_set.spec.selector)
    history = await history_of(stateful_set, selector, ctx, hash_label=_HASH)
    pods = await claimed(ctx, stateful_set, Pod, selector, fits=partial(is_member, stateful_set))
    current = history.named(stateful_set.status.current_revision) or history.newest
    members = StatefulPods(stateful_set, ctx)
    try:
        if not is_deleting(stateful_set):
            await ObservedSet(stateful_set, history, current, pods, members, ctx.now()).step()
    except NavarchError as error:
        if not is_ending(error):
            raise
    finally:
        pods = [pod for pod in ctx.owned(Pod) if is_member(stateful_set, pod)]
        stateful_set.status = _status(stateful_set, history, current, pods, ctx.now())
    live = {history.newest.name, stateful_set.status.current_revision or "", *map(revision_of, pods)}
    await forget_versions(history.versions, live, stateful_set.spec.revision_history_limit, ctx)
    if members.acted:
        return Result(after=0)
    seconds = seconds_until_available(pods, stateful_set.spec.min_ready_seconds, ctx.now())
    return None if seconds is None else Result(after=seconds)


def _status(
    stateful_set: StatefulSet, history: History, current: ControllerRevision, pods: Sequence[Pod], now: datetime
) -> StatefulSetStatus:
    wait, staying = stateful_set.spec.min_ready_seconds, [pod for pod in pods if not is_deleting(pod)]
    status = StatefulSetStatus(
        observed_generation=stateful_set.metadata.generation,
        replicas=len(pods),
        ready_replicas=sum(map(_serves, pods)) or None,
        available_replicas=sum(_serves(pod) and is_available(pod, wait, now) for pod in pods),
        current_replicas=sum(revision_of(pod) == current.name for pod in staying) or None,
        updated_replicas=sum(revision_of(pod) == history.newest.name for pod in staying) or None,
        current_revision=current.name,
        update_revision=history.newest.name,
        collision_count=history.collisions,
        conditions=stateful_set.status.conditions,
    )
    _complete(stateful_set, status)
    return status


def _complete(stateful_set: StatefulSet, status: StatefulSetStatus) -> None:
    """An update is through when every pod is of the newest version and serves."""
    counts = {status.updated_replicas or 0, status.ready_replicas or 0, status.replicas}
    if _is_rolling(stateful_set) and counts == {stateful_set.spec.replicas or 0}:
        status.current_replicas, status.current_revision = status.updated_replicas, status.update_revision


def _is_rolling(stateful_set: StatefulSet) -> bool:
    strategy = stateful_set.spec.update_strategy
    return strategy is None or strategy.type != "OnDelete"


def _partition(stateful_set: StatefulSet) -> int:
    strategy = stateful_set.spec.update_strategy
    rolling = strategy.rolling_update if strategy else None
    return (rolling.partition if rolling else 0) or 0


def _serves(pod: Pod) -> bool:
    return pod.status.phase == "Running" and is_ready(pod)


@dataclass
class ObservedSet:
    """A StatefulSet and its pods as one reconcile sees them: those that are there, and the missing ones that it makes.

    Of missing pods there may be two billion: they are made a burst at a time, where order matters one at a time.
    """

    stateful_set: StatefulSet
    history: History
    current: ControllerRevision
    pods: Sequence[Pod]
    members: StatefulPods
    now: datetime

    def __post_init__(self) -> None:
        self._ordered = self.stateful_set.spec.pod_management_policy != "Parallel"
        found = {ordinal_of(pod): pod for pod in self.pods}
        wanted = ordinals_of(self.stateful_set)
        ordinals = _until_missing(wanted, found, 1 if self._ordered else _BURST)
        self._replicas = [found.get(ordinal) or self._new(ordinal) for ordinal in ordinals]
        self._has_all = len(ordinals) == len(wanted)
        condemned = [pod for ordinal, pod in found.items() if ordinal not in wanted]
        self._condemned = sorted(condemned, key=ordinal_of, reverse=True)

    def _new(self, ordinal: int) -> Pod:
        """Below the partition pods are made as they were."""
        below = ordinal < ordinals_of(self.stateful_set).start + _partition(self.stateful_set)
        revision = self.current if below and _is_rolling(self.stateful_set) else self.history.newest
        return new_pod(self.stateful_set, template_of(revision), revision.name, ordinal)

    async def step(self) -> None:
        """What can be done now: missing pods are made, surplus ones go, old versions are replaced, in that order."""
        if not await self._all(self._replicas, self._tend) or not self._has_all:
            return
        if not await self._all(self._condemned, self._disown):
            return
        if await self._all(self._condemned, self._condemn) and _is_rolling(self.stateful_set):
            await self._update()

    async def _all(self, pods: Sequence[Pod], handle: Callable[[Pod], Awaitable[bool]]) -> bool:
        """Returns True if every pod is as it should be; where order matters, none is looked at before the one before it is."""
        if self._ordered:
            for pod in pods:
                if not await handle(pod):
                    return False
            return True
        done = 0
        for size in slow_start_batches(len(pods)):
            await gather_all([partial(handle, pod) for pod in pods[done : done + size]], at_once=_AT_ONCE)
            done += size
        return True

    async def _tend(self, pod: Pod) -> bool:
        """Returns True if the next pod may be looked at."""
        if not pod.metadata.uid:
            await self.members.create(pod)
            return not self._ordered
        if is_terminal(pod):
            if not is_deleting(pod):
                await self.members.delete(pod)
            return False
        if pod.status.phase == "Pending":
            await self.members.claim(pod)
        if self._ordered and self._is_unavailable(pod):
            return False
        await self.members.mend(pod)
        return True

    async def _disown(self, pod: Pod) -> bool:
        await self.members.own_claims(pod)
        return True

    async def _condemn(self, pod: Pod) -> bool:
        """Where order matters, one goes at a time, and only while all before it serve, but for the first that does not."""
        if is_deleting(pod):
            return not self._ordered
        if self._ordered and self._is_unavailable(pod) and pod is not self._first_unavailable:
            return False
        await self.members.delete(pod)
        return False

    @property
    def _first_unavailable(self) -> Pod | None:
        everybody = [*self._replicas, *reversed(self._condemned)]
        return next((pod for pod in everybody if self._is_unavailable(pod)), None)

    def _is_unavailable(self, pod: Pod) -> bool:
        wait = self.stateful_set.spec.min_ready_seconds
        return is_deleting(pod) or not (_serves(pod) and is_available(pod, wait, self.now))

    async def _update(self) -> None:
        """Pods of old versions go, the last first, down to the partition; each waits for those after it to serve."""
        for pod in replaceable(self._replicas, self._is_outdated, self._is_unavailable, self._allowed):
            await self.members.delete(pod)

    def _is_outdated(self, pod: Pod) -> bool:
        above = ordinal_of(pod) >= ordinals_of(self.stateful_set).start + _partition(self.stateful_set)
        return above and revision_of(pod) != self.history.newest.name

    @property
    def _allowed(self) -> int | None:
        """Returns how many pods may be missing at a time, if the set says so."""
        strategy = self.stateful_set.spec.update_strategy
        rolling = strategy.rolling_update if strategy else None
        if rolling is None or rolling.max_unavailable is None:
            return None
        return max(part_of(rolling.max_unavailable, len(ordinals_of(self.stateful_set)), up=False), 1)


def _until_missing(wanted: range, found: Container[int], count: int) -> list[int]:
    """The first ordinals up to the one with which so many are missing; all of them if fewer are."""
    ordinals: list[int] = []
    for ordinal in wanted:
        if count == 0:
            break
        count -= ordinal not in found
        ordinals.append(ordinal)
    return ordinals


def replaceable(
    pods: Sequence[Pod],
    is_outdated: Callable[[Pod], bool],
    is_unavailable: Callable[[Pod], bool],
    allowed: int | None,
) -> list[Pod]:
    """The pods of old versions that may go now, the last first; without a number, one, and only if all after it serve."""
    if allowed is not None:
        room = allowed - sum(map(is_unavailable, pods))
        return [pod for pod in reversed(pods) if is_outdated(pod) and not is_deleting(pod)][: max(room, 0)]
    for pod in reversed(pods):
        if is_outdated(pod) and not is_deleting(pod):
            return [pod]
        if is_unavailable(pod):
            return []
    return []
