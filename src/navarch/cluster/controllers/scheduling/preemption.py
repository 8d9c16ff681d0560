"""Preemption: selects the pods of lower priority to delete so that a pod of higher priority fits."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from navarch.api import Labels, to_builtins
from navarch.cluster.controllers.controller_context import ControllerContext
from navarch.cluster.controllers.pod_info import PodInfo
from navarch.cluster.controllers.scheduling.node_selection import Chooser, Refused, explained
from navarch.cluster.controllers.scheduling.snapshot import SchedulerSnapshot
from navarch.k8s.policy.v1 import PodDisruptionBudget


class Budgets:
    """Checks disruption budgets for the victims of a preemption."""

    def __init__(self, context: ControllerContext) -> None:
        self._budgets = context.cache.collection(PodDisruptionBudget)

    def violated(self, pods: Iterable[PodInfo]) -> set[str]:
        """The uids of those whose end no budget allows, if all of them were to go, one after the other."""
        found: set[str] = set()
        left: dict[str, int] = {}
        for pod in pods:
            for budget in self._of(pod):
                if pod.key.name in (budget.status.disrupted_pods or {}):
                    continue
                uid = budget.metadata.uid
                left[uid] = left.get(uid, budget.status.disruptions_allowed or 0) - 1
                if left[uid] < 0:
                    found.add(pod.uid)
        return found

    def _of(self, pod: PodInfo) -> Iterable[PodDisruptionBudget]:
        for entry in self._budgets.entries(namespace=pod.namespace):
            budget = self._budgets.view(entry)
            selector = budget.spec.selector
            if selector is not None and Labels.from_wire(to_builtins(selector)).matches(pod.labels):
                yield budget


Violated = Callable[[Iterable[PodInfo]], set[str]]
"""The uids of those pods whose end no disruption budget allows."""

_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NO_CLAIMS: Final = "no new claims to deallocate"
"""Said of dynamically allocated devices, by all pods that wait."""
_NO_HELP: Final = "Preemption is not helpful for scheduling"


@dataclass(frozen=True, slots=True)
class Eviction:
    """A node, and the victims on it."""

    node: str
    victims: tuple[PodInfo, ...]
    violations: int = 0
    """How many of them disruption budgets would have kept."""

    def harm(self) -> tuple[int, int, int, int]:
        """How bad it is: budgets that are not kept to, then the highest priority that is hit, all of them, how many."""
        priorities = [pod.priority for pod in self.victims]
        return (self.violations, max(priorities), sum(priorities), len(priorities))


def make_room(
    world: SchedulerSnapshot, chooser: Chooser, pod: PodInfo, refused: Refused, violated: Violated = lambda _: set()
) -> Eviction | None:
    """The eviction that harms least; None if none helps, or the pod may not preempt."""
    if not pod.may_preempt or refused.outright or not world.has_below(pod.priority):
        return None
    nodes = [name for name in refused.reasons if name not in refused.hopeless]
    found = filter(None, (_on(world, chooser, pod, name, violated) for name in nodes))
    return min(found, key=Eviction.harm, default=None)


def _on(world: SchedulerSnapshot, chooser: Chooser, pod: PodInfo, node: str, violated: Violated) -> Eviction | None:
    """All that are of lower priority would go; then as many as possible stay, those that budgets keep first."""
    lower = [each for each in world.nodes[node].pods.values() if each.priority < pod.priority]
    if not lower:
        return None
    lower.sort(key=lambda each: (-each.priority, each.created))
    kept = violated(lower)
    with world.without(lower):
        if not chooser.fits(pod, node):
            return None
        victims = _victims(world, chooser, pod, node, sorted(lower, key=lambda each: each.uid not in kept))
    return Eviction(node, tuple(victims), len(violated(victims)))


def _victims(
    world: SchedulerSnapshot, chooser: Chooser, pod: PodInfo, node: str, lower: Iterable[PodInfo]
) -> list[PodInfo]:
    """Those that cannot stay, if each stays that can, in this order."""
    spared: list[PodInfo] = []
    victims: list[PodInfo] = []
    for each in lower:
        world.add_pod(each)
        if chooser.fits(pod, node):
            spared.append(each)
        else:
            world.remove_pod(each.uid)
            victims.append(each)
    for each in spared:
        world.remove_pod(each.uid)
    return victims


def no_room_message(refused: Refused) -> str:
    """What Kubernetes says beside the reasons when nobody could be made to leave."""
    reasons = [_NO_HELP if name in refused.hopeless else _NO_VICTIMS for name in refused.reasons]
    if refused.outright:
        return "not found"
    return f"{_NO_CLAIMS}, preemption: {explained(refused.total, reasons)}" if refused.total else ""
