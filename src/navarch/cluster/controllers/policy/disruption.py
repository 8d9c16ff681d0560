"""Updates the status of PodDisruptionBudgets, which evictions check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final

from navarch.api import Condition, Key, Labels, OwnerReference, controller_of, to_builtins
from navarch.cache import Entry
from navarch.cache.lookup import Lookup
from navarch.cluster.controllers.services.backends import is_ready
from navarch.cluster.controllers.workloads.pod_creation import part_of
from navarch.controller.context import Context
from navarch.controller.contract import Result
from navarch.controller.triggers import ByMetadata, any_change
from navarch.errors import ApiError
from navarch.k8s.apps.v1 import Deployment, ReplicaSet, StatefulSet
from navarch.k8s.core.v1 import Pod
from navarch.k8s.policy.v1 import PodDisruptionBudget, PodDisruptionBudgetSpec
from navarch.operator import Operator

_PATIENCE: Final = timedelta(minutes=2)
"""How long an eviction that was allowed may take to show."""


@dataclass(frozen=True, slots=True)
class DisruptionVerdict:
    """The computed status of a budget."""

    current: int
    desired: int
    expected: int
    disrupted: Mapping[str, datetime]

    @property
    def allowed(self) -> int:
        """Returns how many more pods may be disturbed now."""
        return max(self.current - self.desired, 0) if self.expected > 0 else 0


def needs_scale(spec: PodDisruptionBudgetSpec) -> bool:
    """Returns True if it has to be known how many pods there should be: a plain number of pods needs no more than them."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def desired_healthy(spec: PodDisruptionBudgetSpec, expected: int) -> int:
    """Returns how many pods have to be healthy, of so many that there should be."""
    if spec.max_unavailable is not None:
        return max(expected - part_of(spec.max_unavailable, expected, up=True), 0)
    return part_of(spec.min_available, expected, up=True)


def disrupted_pods(budget: PodDisruptionBudget, pods: Iterable[Pod], now: datetime) -> dict[str, datetime]:
    """Evictions that were allowed and have not shown yet, for two minutes at most."""
    staying = {pod.name for pod in pods if pod.metadata.deletion_timestamp is None}
    known = budget.status.disrupted_pods or {}
    return {name: since for name, since in known.items() if name in staying and now < since + _PATIENCE}


def verdict(budget: PodDisruptionBudget, pods: Iterable[Pod], expected: int, now: datetime) -> DisruptionVerdict:
    """What the budget says of these pods, of which there should be so many."""
    pods = tuple(pods)
    disrupted = disrupted_pods(budget, pods, now)
    healthy = [
        pod for pod in pods if is_ready(pod) and pod.metadata.deletion_timestamp is None and pod.name not in disrupted
    ]
    return DisruptionVerdict(len(healthy), desired_healthy(budget.spec, expected), expected, disrupted)


_ALLOWED: Final = "DisruptionAllowed"
_LOOK_AGAIN_SECONDS: Final = 120.0


def declare_disruption(operator: Operator) -> None:
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
    """Returns how many pods their controllers should have, each asked once; pods of nobody do not count."""
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


async def _write(budget: PodDisruptionBudget, found: DisruptionVerdict, ctx: Context) -> None:
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
