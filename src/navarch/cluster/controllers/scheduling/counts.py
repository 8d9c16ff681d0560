"""How many pods of some kind are on each node, kept up to date pod by pod."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from typing import Protocol

import msgspec

from navarch.api import Labels, to_builtins
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.k8s.meta.v1 import LabelSelector


class Question(Protocol):
    """Which pods are counted. Questions that are equal are counted once."""

    def __hash__(self) -> int: ...

    def matches(self, pod: PodInfo) -> bool:
        """Whether the pod counts."""
        ...


class Selected(msgspec.Struct, frozen=True):
    """Pods of some namespaces, or of all (None), whose labels match; those that are being deleted may count or not."""

    namespaces: frozenset[str] | None
    labels: Labels
    with_deleting: bool = True

    def matches(self, pod: PodInfo) -> bool:
        """See `Question`."""
        if self.namespaces is not None and pod.namespace not in self.namespaces:
            return False
        if pod.is_deleting and not self.with_deleting:
            return False
        return self.labels.matches(pod.labels)


class Owned(msgspec.Struct, frozen=True):
    """Pods of one controller."""

    uid: str

    def matches(self, pod: PodInfo) -> bool:
        """See `Question`."""
        return pod.owner == self.uid and not pod.is_deleting


class Counts:
    """Answers questions by node; one that was asked before is answered at once, until it has not been for long."""

    def __init__(self, pods: Callable[[], Iterable[PodInfo]], capacity: int = 512) -> None:
        self._pods = pods
        self._capacity = capacity
        self._known: dict[Question, Counter[str]] = {}

    def by_node(self, question: Question) -> Mapping[str, int]:
        """How many pods there are for it on each node that has some."""
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
