"""Counts of pods per topology domain, updated pod by pod, and the affinity terms that need them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

import msgspec

from navarch.api import Labels, to_builtins
from navarch.api.selectors import LabelRequirement, Operator
from navarch.cluster.controllers.pod_info import PodInfo, affinity_of
from navarch.k8s.core.v1 import PodAffinityTerm, WeightedPodAffinityTerm
from navarch.k8s.meta.v1 import LabelSelector

NamespacesWith = Callable[[Labels], frozenset[str]]
"""The namespaces whose labels match."""


class Near(msgspec.Struct, frozen=True):
    """One affinity term: a query of pods, and a topology key of nodes."""

    pods: Selected
    topology_key: str


@dataclass(frozen=True, slots=True)
class NearAndFar:
    """The required affinity and anti-affinity terms of a pod, and the preferred ones with weights: negative is anti-affinity."""

    near: tuple[Near, ...] = ()
    far: tuple[Near, ...] = ()
    liked: tuple[tuple[Near, int], ...] = ()


_NOTHING = NearAndFar()


class Terms:
    """Parses the terms of pods, once per pod template."""

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
            labels = with_keys(labels, pod.labels, term.match_label_keys, Operator.IN)
            labels = with_keys(labels, pod.labels, term.mismatch_label_keys, Operator.NOT_IN)
        return Near(Selected(self._namespaces(pod, term), labels), term.topology_key)

    def _namespaces(self, pod: PodInfo, term: PodAffinityTerm) -> frozenset[str] | None:
        """Those that are named, and those that are selected; the pod's own if neither is there."""
        if term.namespace_selector is None:
            return frozenset(term.namespaces or (pod.namespace,))
        selector = selector_of(term.namespace_selector)
        return None if not selector else frozenset(term.namespaces or ()) | self._namespaces_with(selector)


def with_keys(selector: Labels, labels: Mapping[str, str], keys: Iterable[str] | None, operator: Operator) -> Labels:
    """The selector, and the values that the pod itself has of these labels."""
    present = [LabelRequirement(key, operator, (labels[key],)) for key in keys or () if key in labels]
    return selector & Labels.where(*present) if present else selector


class CountQuery(Protocol):
    """Selects the pods to count. Equal queries are counted once."""

    def __hash__(self) -> int: ...

    def matches(self, pod: PodInfo) -> bool:
        """Returns True if the pod counts."""
        ...


class Selected(msgspec.Struct, frozen=True):
    """Pods of some namespaces, or of all (None), whose labels match; with or without terminating ones."""

    namespaces: frozenset[str] | None
    labels: Labels
    with_deleting: bool = True

    def matches(self, pod: PodInfo) -> bool:
        """See `CountQuery`."""
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        if pod.is_deleting and not self.with_deleting:
            return False
        return self.labels.matches(pod.labels)


class OwnedPods(msgspec.Struct, frozen=True):
    """Pods of one controller."""

    uid: str

    def matches(self, pod: PodInfo) -> bool:
        """See `CountQuery`."""
        return pod.owner == self.uid and not pod.is_deleting


class Counts:
    """Counts of pods by node for each query; keeps the counts of recent queries up to date."""

    def __init__(self, pods: Callable[[], Iterable[PodInfo]], capacity: int = 512) -> None:
        self._pods = pods
        self._capacity = capacity
        self._known: dict[CountQuery, Counter[str]] = {}

    def by_node(self, question: CountQuery) -> Mapping[str, int]:
        """Returns how many pods there are for it on each node that has some."""
        found = self._known.pop(question, None)
        if found is None:
            found = Counter(pod.node for pod in self._pods() if question.matches(pod))
        self._known[question] = found  # at the end: what has not been asked for longest is first
        if len(self._known) > self._capacity:
            del self._known[next(iter(self._known))]
        return found

    def came(self, pod: PodInfo) -> None:
        """A pod is on its node."""
        self._count(pod, 1)

    def went(self, pod: PodInfo) -> None:
        """A pod is no longer there, or no longer like this."""
        self._count(pod, -1)

    def _count(self, pod: PodInfo, sign: int) -> None:
        for question, found in self._known.items():
            if question.matches(pod):
                found[pod.node] += sign
                if not found[pod.node]:
                    del found[pod.node]

    def forget(self) -> None:
        """What was asked depends on something that has changed: all is counted anew."""
        self._known.clear()


def domains(counts: Mapping[str, int], places: Mapping[str, str]) -> Counter[str]:
    """Counts by domain, of counts by node; `places` says in which domain each node is."""
    found: Counter[str] = Counter()
    for node, count in counts.items():
        if (domain := places.get(node)) is not None:
            found[domain] += count
    return found


def selector_of(selector: LabelSelector | None) -> Labels:
    """The labels that are meant: nothing if there is no selector."""
    return Labels.from_wire(None if selector is None else to_builtins(selector))
