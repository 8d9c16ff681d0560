"""The Deployment controller: one step of a rollout per reconcile."""

from __future__ import annotations

from navarch.cluster.controllers.workloads.adoption import claimed, declare_owner, selector_of
from navarch.cluster.controllers.workloads.deployments.replica_counts import (
    grown,
    has_deadline,
    is_complete,
    is_rolling,
    progressing,
    proportional,
    seconds_to_deadline,
    set_condition,
    shrunk,
    status_of,
    with_failures,
    with_progress,
)
from navarch.cluster.controllers.workloads.deployments.revisions import DESIRED, by_age, number_on
from navarch.cluster.controllers.workloads.deployments.rollout import Rollout, size_of
from navarch.cluster.controllers.workloads.pods import is_deleting
from navarch.controller import Context, Result
from navarch.k8s.apps.v1 import Deployment, ReplicaSet
from navarch.operator import Operator

_AT_ONCE = Result(after=0)


def declare_deployments(operator: Operator) -> None:
    """Adds the controller of Deployments."""
    declare_owner(operator, Deployment, ReplicaSet, _reconcile)


async def _reconcile(deployment: Deployment, ctx: Context) -> Result | None:
    selector = selector_of(deployment.spec.selector)
    if not selector.requirements:
        note = "This deployment is selecting all pods. A non-empty selector is required."
        ctx.event("SelectingAll", note, type="Warning")
        deployment.status.observed_generation = deployment.metadata.generation
        return None
    rollout = Rollout(deployment, await claimed(ctx, deployment, ReplicaSet, selector), ctx)
    if is_deleting(deployment):
        deployment.status = status_of(deployment, rollout.all, rollout.new, ctx.now())
        return None
    _tell_pause(deployment, ctx)
    await rollout.number()
    if deployment.spec.paused or _is_scaled(rollout):
        return await _resize(rollout, ctx)
    moved = await (_roll(rollout) if is_rolling(deployment) else _recreate(rollout))
    return await _settle(rollout, moved, ctx)


def _tell_pause(deployment: Deployment, ctx: Context) -> None:
    """The time that a Deployment is paused does not count as time without progress."""
    known = next((each for each in deployment.status.conditions or () if each.type == "Progressing"), None)
    if not has_deadline(deployment) or (known is not None and known.reason == "ProgressDeadlineExceeded"):
        return
    was_paused = known is not None and known.reason == "DeploymentPaused"
    if deployment.spec.paused and not was_paused:
        condition = progressing("Unknown", "DeploymentPaused", "Deployment is paused")
        set_condition(deployment.status, condition, ctx.now())
    elif not deployment.spec.paused and was_paused:
        condition = progressing("Unknown", "DeploymentResumed", "Deployment is resumed")
        set_condition(deployment.status, condition, ctx.now())


def _is_scaled(rollout: Rollout) -> bool:
    """Returns True if the Deployment asks for another number of pods than its ReplicaSets were sized for."""
    return any(number_on(each, DESIRED) not in {None, rollout.bounds.replicas} for each in rollout.active)


async def _resize(rollout: Rollout, ctx: Context) -> Result | None:
    deployment = rollout.deployment
    await _scale_all(rollout)
    if deployment.spec.paused:
        await rollout.forget_history()
    deployment.status = status_of(deployment, rollout.all, rollout.new, ctx.now())
    return None if deployment.spec.paused or _is_scaled(rollout) else _AT_ONCE


async def _scale_all(rollout: Rollout) -> None:
    only = _active_or_latest(rollout)
    if only is not None:
        await rollout.scale(only, rollout.bounds.replicas)
    elif _is_saturated(rollout):
        for old in rollout.old:
            await rollout.scale(old, 0)
    elif is_rolling(rollout.deployment):
        await _scale_in_proportion(rollout)


def _active_or_latest(rollout: Rollout) -> ReplicaSet | None:
    """The one ReplicaSet that has pods, or would have them; None if there are several, or none at all."""
    active = rollout.active
    if len(active) > 1:
        return None
    return next(iter(active or ([rollout.new] if rollout.new else rollout.old[-1:])), None)


def _is_saturated(rollout: Rollout) -> bool:
    """Returns True if the new ReplicaSet has all pods that are wanted."""
    new, wanted = rollout.new, rollout.bounds.replicas
    if new is None:
        return False
    return {new.spec.replicas, number_on(new, DESIRED), new.status.available_replicas or 0} == {wanted}


async def _scale_in_proportion(rollout: Rollout) -> None:
    active = rollout.active
    growing = rollout.bounds.most > sum(each.spec.replicas or 0 for each in active)
    ordered = by_age(active)
    if growing:
        ordered.reverse()
    ordered.sort(key=lambda each: -(each.spec.replicas or 0))
    now = rollout.deployment.status.replicas or 0
    sizes = proportional(rollout.bounds, [size_of(each) for each in ordered], now)
    for replica_set, size in zip(ordered, sizes, strict=True):
        await rollout.scale(replica_set, size, note=True)


async def _roll(rollout: Rollout) -> bool:
    """One step of a rolling update: new pods come, or else old ones go. Whether anything moved."""
    if rollout.new is None:
        await rollout.create()
    new = rollout.new
    assert new is not None
    total = sum(each.spec.replicas or 0 for each in rollout.all)
    if await rollout.scale(new, grown(rollout.bounds, new.spec.replicas or 0, total)):
        return True
    old = [each for each in rollout.old if each.spec.replicas]
    sizes = shrunk(rollout.bounds, [size_of(each) for each in old], size_of(new))
    moved = [await rollout.scale(each, size) for each, size in zip(old, sizes, strict=True)]
    return any(moved)


async def _recreate(rollout: Rollout) -> bool:
    """One step of a rollout in which no new pod comes before all old ones are gone. Whether anything moved."""
    moved = [await rollout.scale(each, 0) for each in rollout.old]
    if any(moved) or any(map(_has_pods, rollout.old)):
        return any(moved)
    if rollout.new is None:
        await rollout.create()
    assert rollout.new is not None
    return await rollout.scale(rollout.new, rollout.bounds.replicas)


def _has_pods(replica_set: ReplicaSet) -> bool:
    """Returns True if there are pods of it that may still run, or might be for all that is known."""
    status = replica_set.status
    unseen = (status.observed_generation or 0) < replica_set.metadata.generation
    return unseen or bool(status.replicas or status.terminating_replicas)


async def _settle(rollout: Rollout, moved: bool, ctx: Context) -> Result | None:
    """Writes down how far the rollout has come, and tidies up after one that is through."""
    deployment, now = rollout.deployment, ctx.now()
    status = with_progress(deployment, status_of(deployment, rollout.all, rollout.new, now), rollout.new, now)
    status = with_failures(status, rollout.all, rollout.new)
    if not moved and is_complete(deployment, status):
        await rollout.forget_history()
    deployment.status = status
    if moved:
        return _AT_ONCE
    seconds = seconds_to_deadline(deployment, status, now)
    return None if seconds is None else Result(after=seconds)
