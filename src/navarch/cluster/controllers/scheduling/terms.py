"""Pod affinity, read once: which pods a term means, and what is to be near or far."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

import msgspec

from navarch.api import Labels
from navarch.api.names import SelectorOperator
from navarch.api.selectors import LabelRequirement
from navarch.cluster.controllers.scheduling.counts import Selected, selector_of
from navarch.cluster.controllers.scheduling.pods import PodInfo, affinity_of
from navarch.k8s.core.v1 import PodAffinityTerm, WeightedPodAffinityTerm

__all__ = ["NamespacesWith", "Near", "NearAndFar", "Terms", "with_keys"]

NamespacesWith = Callable[[Labels], frozenset[str]]
"""The namespaces whose labels match."""


class Near(msgspec.Struct, frozen=True):
    """One term: the pods that are meant, and by which label of nodes it is told what is near."""

    pods: Selected
    topology_key: str


@dataclass(frozen=True, slots=True)
class NearAndFar:
    """What a pod wants near it and far from it, and what it would like, with weights: less than 0 is far."""

    near: tuple[Near, ...] = ()
    far: tuple[Near, ...] = ()
    liked: tuple[tuple[Near, int], ...] = ()


_NOTHING = NearAndFar()


class Terms:
    """Reads the terms of pods, those of one template once."""

    def __init__(self, namespaces_with: NamespacesWith) -> None:
        self._namespaces_with = namespaces_with
        self._known: dict[tuple[bytes, str, frozenset[tuple[str, str]]], NearAndFar] = {}

    def forget(self) -> None:
        """Labels of namespaces have changed: what was read may mean others now."""
        self._known.clear()

    def of(self, pod: PodInfo) -> NearAndFar:
        """What the pod wants."""
        if b"odA" not in pod.affinity:  # podAffinity, podAntiAffinity
            return _NOTHING
        labels = frozenset(pod.labels.items()) if b"atchLabelKeys" in pod.affinity else frozenset()
        key = (pod.affinity, pod.namespace, labels)
        found = self._known.get(key)
        if found is None:
            found = self._known[key] = self._read(pod)
        return found

    def _read(self, pod: PodInfo) -> NearAndFar:
        affinity = affinity_of(pod.affinity)
        near, far = affinity.pod_affinity, affinity.pod_anti_affinity
        liked = self._weighted(pod, near.preferred_during_scheduling_ignored_during_execution if near else None, 1)
        unliked = self._weighted(pod, far.preferred_during_scheduling_ignored_during_execution if far else None, -1)
        return NearAndFar(
            near=self._terms(pod, near.required_during_scheduling_ignored_during_execution if near else None),
            far=self._terms(pod, far.required_during_scheduling_ignored_during_execution if far else None),
            liked=liked + unliked,
        )

    def _terms(self, pod: PodInfo, terms: Iterable[PodAffinityTerm] | None) -> tuple[Near, ...]:
        return tuple(self._term(pod, term) for term in terms or ())

    def _weighted(
        self, pod: PodInfo, terms: Iterable[WeightedPodAffinityTerm] | None, sign: int
    ) -> tuple[tuple[Near, int], ...]:
        return tuple((self._term(pod, each.pod_affinity_term), sign * each.weight) for each in terms or ())

    def _term(self, pod: PodInfo, term: PodAffinityTerm) -> Near:
        labels = selector_of(term.label_selector)
        if term.label_selector is not None:
            labels = with_keys(labels, pod.labels, term.match_label_keys, SelectorOperator.IN)
            labels = with_keys(labels, pod.labels, term.mismatch_label_keys, SelectorOperator.NOT_IN)
        return Near(Selected(self._namespaces(pod, term), labels), term.topology_key)

    def _namespaces(self, pod: PodInfo, term: PodAffinityTerm) -> frozenset[str] | None:
        """Those that are named, and those that are selected; the pod's own if neither is there."""
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (pod.namespace,))
        selector = selector_of(term.namespace_selector)
        return None if not selector else frozenset(term.namespaces or ()) | self._namespaces_with(selector)


def with_keys(
    selector: Labels, labels: Mapping[str, str], keys: Iterable[str] | None, operator: SelectorOperator
) -> Labels:
    """The selector, and the values that the pod itself has of these labels."""
    present = [LabelRequirement(key, operator, (labels[key],)) for key in keys or () if key in labels]
    return selector & Labels.where(*present) if present else selector
