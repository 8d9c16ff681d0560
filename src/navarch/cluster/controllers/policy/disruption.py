"""Keeps the status of disruption budgets, which evictions go by."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any, Final

from navarch.api import Condition, Key, Labels, OwnerReference, controller_of, to_builtins
from navarch.cache import Entry
from navarch.cluster.controllers.policy.budgets import Verdict, needs_scale, verdict
from navarch.controller.cache_reader import Lookup
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.triggers import ByMetadata, any_change
from navarch.errors import ApiError
from navarch.k8s.apps.v1 import Deployment, ReplicaSet, StatefulSet
from navarch.k8s.core.v1 import Pod
from navarch.k8s.policy.v1 import PodDisruptionBudget
from navarch.operator import Operator

__all__ = ["declare"]

_ALLOWED: Final = "DisruptionAllowed"
_LOOK_AGAIN_SECONDS: Final = 120.0


def declare(operator: Operator) -> None:
    """Adds the controller."""

    @operator.controller(
        PodDisruptionBudget,
        watches={Pod: ByMetadata(_budgets_of)},
        reads=(ReplicaSet, Deployment, StatefulSet),
        when=any_change,
        name="disruption",
    )
    async def keep_status(budget: PodDisruptionBudget, ctx: Context) -> Result | None:
        selector = budget.spec.selector
        pods = await ctx.list(Pod, labels=Labels.from_wire(None if selector is None else to_builtins(selector)))
        if not pods:
            ctx.event("NoPods", "No matching pods found")
        try:
            expected = await _expected(pods, ctx) if needs_scale(budget.spec) else len(pods)
        except ApiError as error:
            note = f"Failed to calculate the number of expected pods: {error}"
            ctx.event("CalculateExpectedPodCountFailed", note, type="Warning")
            await _fail(budget, str(error), ctx)
            return None
        found = verdict(budget, pods, expected, ctx.now())
        await _write(budget, found, ctx)
        return Result(after=_LOOK_AGAIN_SECONDS) if found.disrupted else None


def _budgets_of(entry: Entry, lookup: Lookup) -> Iterable[Key]:
    labels = entry.labels
    for budget in lookup.list(PodDisruptionBudget, namespace=entry.key.namespace):
        selector = budget.spec.selector
        if selector is not None and Labels.from_wire(to_builtins(selector)).matches(labels):
            yield Key(budget.namespace, budget.name)


async def _expected(pods: Iterable[Pod], ctx: Context) -> int:
    """How many pods their controllers should have, each asked once; pods of nobody do not count."""
    owners: dict[str, OwnerReference] = {}
    for pod in pods:
        if (owner := controller_of(pod)) is not None:
            owners[owner.uid] = owner
    scales: dict[str, int] = {}
    for owner in owners.values():
        uid, replicas = await _scale(owner, ctx)
        scales[uid] = replicas
    return sum(scales.values())


async def _scale(owner: OwnerReference, ctx: Context) -> tuple[str, int]:
    """Whoever decides how many there are, and how many that is: for pods of a ReplicaSet it may be a Deployment."""
    group = owner.api_version.rpartition("/")[0]
    if (group, owner.kind) == ("apps", "ReplicaSet"):
        replica_set = await ctx.get(ReplicaSet, owner.name)
        above = controller_of(replica_set) if replica_set is not None else None
        deployment = await ctx.get(Deployment, above.name) if above is not None and above.kind == "Deployment" else None
        if above is not None and deployment is not None:
            return above.uid, _replicas(deployment.spec.replicas)
        return owner.uid, _replicas(replica_set.spec.replicas) if replica_set is not None else 0
    if (group, owner.kind) == ("apps", "StatefulSet"):
        found = await ctx.get(StatefulSet, owner.name)
        return owner.uid, _replicas(found.spec.replicas) if found is not None else 0
    kind = await ctx.client.discovery.kind(owner.api_version, owner.kind)
    scale = await ctx.client.get_scale(kind, owner.name, namespace=ctx.key.namespace)
    return owner.uid, scale.spec.replicas or 0


def _replicas(number: int | None) -> int:
    return 1 if number is None else number


async def _write(budget: PodDisruptionBudget, found: Verdict, ctx: Context) -> None:
    """Only over what was read: an eviction that came between counts, and must not be lost."""
    status, before = budget.status, budget.status.disrupted_pods or {}
    is_allowed = found.allowed > 0
    reason = "SufficientPods" if is_allowed else "InsufficientPods"
    wanted = {
        "currentHealthy": found.current,
        "desiredHealthy": found.desired,
        "expectedPods": found.expected,
        "disruptionsAllowed": found.allowed,
        "disruptedPods": {**dict.fromkeys(before), **found.disrupted} or None,
        "observedGeneration": budget.metadata.generation,
        "conditions": _conditions(budget, "True" if is_allowed else "False", reason, "", ctx.now()),
    }
    current = (status.current_healthy, status.desired_healthy, status.expected_pods, status.disruptions_allowed)
    is_same = current == (found.current, found.desired, found.expected, found.allowed) and before == found.disrupted
    is_said = any((each.type, each.reason) == (_ALLOWED, reason) for each in status.conditions or ())
    if not (is_same and is_said and status.observed_generation == budget.metadata.generation):
        await ctx.patch(budget, {"status": wanted}, subresource="status")


async def _fail(budget: PodDisruptionBudget, why: str, ctx: Context) -> None:
    """Nothing may be disturbed while it is not known what there should be."""
    conditions = _conditions(budget, "False", "SyncFailed", why, ctx.now())
    wanted: dict[str, Any] = {"disruptionsAllowed": 0, "observedGeneration": budget.metadata.generation}
    await ctx.patch(budget, {"status": {**wanted, "conditions": conditions}}, subresource="status")


def _conditions(budget: PodDisruptionBudget, status: str, reason: str, message: str, now: datetime) -> list[Condition]:
    old = next((each for each in budget.status.conditions or () if each.type == _ALLOWED), None)
    others = [each for each in budget.status.conditions or () if each.type != _ALLOWED]
    is_new = old is None or old.status != status
    new = Condition(
        type=_ALLOWED,
        status="True" if status == "True" else "False",
        reason=reason,
        message=message,
        observed_generation=budget.metadata.generation,
        last_transition_time=now.replace(microsecond=0) if is_new or old is None else old.last_transition_time,
    )
    return [*others, new]
