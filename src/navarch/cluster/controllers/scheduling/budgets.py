"""Disruption budgets, where pods have to make room: they are kept to if that is possible."""

from __future__ import annotations

from collections.abc import Iterable

from navarch.api import Labels, to_builtins
from navarch.cluster.controllers.parts import Around
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.k8s.policy.v1 import PodDisruptionBudget


class Budgets:
    """What budgets say of pods that would have to go."""

    def __init__(self, around: Around) -> None:
        self._budgets = around.cache.collection(PodDisruptionBudget)

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
