"""The ReplicaSet and ReplicationController controllers: keep the requested number of pods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from functools import partial
from typing import cast

from navarch.api import Labels, Object, controller_of, from_builtins, to_builtins, truncate_to_seconds
from navarch.client.target import Readable
from navarch.cluster.controllers.workloads.adoption import claimed, declare_owner, matcher_of, selector_of
from navarch.cluster.controllers.workloads.pod_creation import (
    create_pods,
    delete_pods,
    gathered,
    is_ending,
    pod_of,
    prefix_of,
    reason_of,
)
from navarch.cluster.controllers.workloads.pods import (
    PODS,
    is_active,
    is_available,
    is_deleting,
    is_ready,
    is_terminating,
    least_loss_first,
    seconds_until_available,
)
from navarch.controller import Context, Result
from navarch.errors import NavarchError
from navarch.k8s.apps.v1 import ReplicaSet, ReplicaSetCondition, ReplicaSetSpec, ReplicaSetStatus
from navarch.k8s.core.v1 import Pod, ReplicationController, ReplicationControllerStatus
from navarch.k8s.meta.v1 import LabelSelector
from navarch.operator import Operator

_BURST = 500
_FAILURE = "ReplicaFailure"
_AT_ONCE = Result(after=0)


def declare_replica_sets(operator: Operator) -> None:
    """Adds the controllers of ReplicaSets and of ReplicationControllers."""
    declare_owner(operator, ReplicaSet, PODS, _reconcile)
    declare_owner(operator, ReplicationController, PODS, _reconcile_controller)


async def _reconcile(replica_set: ReplicaSet, ctx: Context) -> Result | None:
    return await _replicated(replica_set, replica_set, ctx)


async def _reconcile_controller(controller: ReplicationController, ctx: Context) -> Result | None:
    """A ReplicationController is what a ReplicaSet was before, and is treated as one."""
    view = _as_replica_set(controller)
    try:
        return await _replicated(controller, view, ctx)
    finally:
        controller.status = from_builtins(ReplicationControllerStatus, to_builtins(view.status))


def _as_replica_set(controller: ReplicationController) -> ReplicaSet:
    spec = controller.spec
    return ReplicaSet(
        metadata=controller.metadata,
        spec=ReplicaSetSpec(
            replicas=spec.replicas,
            min_ready_seconds=spec.min_ready_seconds,
            selector=LabelSelector(match_labels=spec.selector),
            template=spec.template,
        ),
        status=from_builtins(ReplicaSetStatus, to_builtins(controller.status)),
    )


async def _replicated(owner: Object, replica_set: ReplicaSet, ctx: Context) -> Result | None:
    """The pods are the owner's, and as many as the ReplicaSet asks for, which it is or is seen as."""
    if not await gathered(ctx, owner, replica_set.status.replicas):
        return None
    selector = selector_of(replica_set.spec.selector)
    pods = await claimed(ctx, owner, Pod, selector, adopts=is_active)
    active = [pod for pod in pods if is_active(pod)]
    excess = 0 if is_deleting(replica_set) else len(active) - (replica_set.spec.replicas or 0)
    failure = await _scaled(owner, replica_set, active, excess, ctx)
    if excess:
        pods = list(filter(_by(matcher_of(selector)), ctx.owned(Pod)))
    now = ctx.now()
    replica_set.status = _status(replica_set, pods, now)
    _set_failure(replica_set, failure, now)
    if failure is not None:
        raise failure
    return _AT_ONCE if abs(excess) > _BURST else _again(replica_set, pods, now)


def _by(matches: Callable[[Mapping[str, str]], bool]) -> Callable[[Pod], bool]:
    return lambda pod: matches(pod.metadata.labels)


async def _scaled(
    owner: Object, replica_set: ReplicaSet, active: list[Pod], excess: int, ctx: Context
) -> NavarchError | None:
    """Makes or deletes pods, a few hundred at a time; what went wrong."""
    count = min(abs(excess), _BURST)
    try:
        if excess < 0:
            await _create(replica_set, count, ctx)
        elif excess > 0:
            await delete_pods(ctx, (await _dispensable(owner, active, excess, ctx))[:count])
    except NavarchError as error:
        return None if is_ending(error) else error
    return None


async def _create(replica_set: ReplicaSet, count: int, ctx: Context) -> None:
    template = replica_set.spec.template
    assert template is not None
    await create_pods(ctx, [partial(pod_of, template, prefix=prefix_of(replica_set))] * count)


async def _dispensable(owner: Object, active: list[Pod], excess: int, ctx: Context) -> list[Pod]:
    """The pods in the order in which they should go; if all have to go, in any."""
    if excess >= len(active):
        return active
    return least_loss_first(active, await _related(owner, ctx), ctx.now())


async def _related(owner: Object, ctx: Context) -> list[Pod]:
    """The pods of all of its kind that have the same controller: they should not crowd on one node."""
    controller = controller_of(owner)
    if controller is None:
        return ctx.owned(Pod)
    relatives = [
        each
        for each in await ctx.list(cast(Readable[ReplicaSet], type(owner)))
        if (other := controller_of(each)) is not None and other.uid == controller.uid
    ]
    return [pod for each in relatives for pod in await ctx.list(Pod, labels=selector_of(each.spec.selector))]


def _status(replica_set: ReplicaSet, pods: Sequence[Pod], now: datetime) -> ReplicaSetStatus:
    template, wait = replica_set.spec.template, replica_set.spec.min_ready_seconds
    labelled = _by(matcher_of(Labels.of(template.metadata.labels if template else {})))
    active = [pod for pod in pods if is_active(pod)]
    ready = [pod for pod in active if is_ready(pod)]
    return ReplicaSetStatus(
        replicas=len(active),
        fully_labeled_replicas=sum(map(labelled, active)) or None,
        ready_replicas=len(ready) or None,
        available_replicas=(sum(is_available(pod, wait, now) for pod in ready) if wait else len(ready)) or None,
        terminating_replicas=sum(map(is_terminating, pods)) if len(active) < len(pods) else 0,
        observed_generation=replica_set.metadata.generation,
        conditions=replica_set.status.conditions,
    )


def _set_failure(replica_set: ReplicaSet, failure: NavarchError | None, now: datetime) -> None:
    """The condition that says that pods cannot be made or deleted stays as it first was until they can."""
    status = replica_set.status
    others = [each for each in status.conditions or () if each.type != _FAILURE]
    if failure is None:
        status.conditions = others or None
    elif len(others) == len(status.conditions or ()):
        lacking = status.replicas < (replica_set.spec.replicas or 0)
        condition = ReplicaSetCondition(
            type=_FAILURE,
            status="True",
            reason="FailedCreate" if lacking else "FailedDelete",
            message=reason_of(failure),
            last_transition_time=truncate_to_seconds(now),
        )
        status.conditions = [*others, condition]


def _again(replica_set: ReplicaSet, pods: Sequence[Pod], now: datetime) -> Result | None:
    """When the next pod will have been ready for long enough."""
    seconds = seconds_until_available(filter(is_active, pods), replica_set.spec.min_ready_seconds, now)
    return None if seconds is None else Result(after=seconds)
