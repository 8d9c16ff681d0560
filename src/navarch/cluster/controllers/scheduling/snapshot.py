"""`SchedulerSnapshot`: the nodes, the pods on them and the pod counts that the scheduler decides by."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TypeVar

from navarch.cluster.controllers.pod_info import PodInfo
from navarch.cluster.controllers.scheduling.node_info import NodeInfo, NodeState
from navarch.cluster.controllers.scheduling.pod_counts import Counts, NamespacesWith, Near, Terms

K = TypeVar("K")


class SchedulerSnapshot:
    """Updated by watch events and by decisions of the scheduler; no method awaits.

    Pods on nodes that are not known are kept, and count as soon as the node is. `generation` grows whenever a node
    changes in a way that matters to where pods can go.
    """

    def __init__(self, namespaces_with: NamespacesWith = lambda _: frozenset()) -> None:
        self.nodes: dict[str, NodeState] = {}
        self.generation = 0
        self.terms = Terms(namespaces_with)
        self.counts = Counts(self.pods)
        self.kept_away: dict[Near, Counter[str]] = {}
        """What pods that are there do not want near them, and on which nodes they are."""
        self.liked: dict[tuple[Near, int], Counter[str]] = {}
        """What pods that are there would like near them or far from them, likewise."""
        self.nominated: dict[str, dict[str, PodInfo]] = {}
        """Pods for which room was made on a node, until they are there."""
        self._pods: dict[str, PodInfo] = {}
        self._priorities: Counter[int] = Counter()
        self._places: dict[str, Mapping[str, str]] = {}

    # Nodes

    def set_node(self, info: NodeInfo) -> bool:
        """A node came or changed; whether it matters."""
        known = self.nodes.get(info.name)
        if known is not None and known.info == info:
            return False
        pods = known.pods.values() if known is not None else self._pods_on(info.name)
        self.nodes[info.name] = NodeState(info, pods)
        self._moved_on()
        return True

    def remove_node(self, name: str) -> None:
        """A node is gone."""
        if self.nodes.pop(name, None) is not None:
            self._moved_on()

    def _pods_on(self, name: str) -> Iterator[PodInfo]:
        return (pod for pod in self._pods.values() if pod.node == name)

    def _moved_on(self) -> None:
        self.generation += 1
        self._places.clear()

    def places(self, topology_key: str) -> Mapping[str, str]:
        """The domain of each node that has one."""
        found = self._places.get(topology_key)
        if found is None:
            found = self._places[topology_key] = {
                name: state.info.labels[topology_key]
                for name, state in self.nodes.items()
                if topology_key in state.info.labels
            }
        return found

    # Pods

    def pods(self) -> Iterable[PodInfo]:
        """All pods that are on nodes, or will be in a moment."""
        return self._pods.values()

    def pod(self, uid: str) -> PodInfo | None:
        """A pod that is on a node, or will be in a moment."""
        return self._pods.get(uid)

    def add_pod(self, pod: PodInfo) -> None:
        """A pod is on a node, or has changed there."""
        self.remove_pod(pod.uid)
        self._pods[pod.uid] = pod
        if (state := self.nodes.get(pod.node)) is not None:
            state.add(pod)
        self._priorities[pod.priority] += 1
        self.counts.came(pod)
        self._note_wishes(pod, 1)

    def remove_pod(self, uid: str) -> PodInfo | None:
        """A pod is no longer there; the pod, if it was."""
        pod = self._pods.pop(uid, None)
        if pod is None:
            return None
        if (state := self.nodes.get(pod.node)) is not None:
            state.remove(uid)
        self._priorities[pod.priority] -= 1
        self.counts.went(pod)
        self._note_wishes(pod, -1)
        return pod

    def has_below(self, priority: int) -> bool:
        """Returns True if there is a pod of lower priority anywhere."""
        return any(each < priority and count for each, count in self._priorities.items())

    def _note_wishes(self, pod: PodInfo, sign: int) -> None:
        wishes = self.terms.of(pod)
        for term in wishes.far:
            _note(self.kept_away, term, pod.node, sign)
        for liked in wishes.liked:
            _note(self.liked, liked, pod.node, sign)

    def namespaces_changed(self) -> None:
        """Labels of namespaces decide what terms mean: what depends on them is read anew."""
        self.terms.forget()
        self.kept_away.clear()
        self.liked.clear()
        for pod in self._pods.values():
            self._note_wishes(pod, 1)

    @contextmanager
    def without(self, pods: Iterable[PodInfo]) -> Iterator[None]:
        """As if these pods were gone."""
        gone = list(pods)
        for pod in gone:
            self.remove_pod(pod.uid)
        try:
            yield
        finally:
            for pod in gone:
                self.add_pod(pod)

    # Room that was made

    def nominate(self, pod: PodInfo, node: str) -> None:
        """Room was made on that node for the pod: those of lower priority are not to take it."""
        self.unnominate(pod.uid)
        self.nominated.setdefault(node, {})[pod.uid] = pod

    def unnominate(self, uid: str) -> None:
        """The pod needs it no more."""
        for node, pods in tuple(self.nominated.items()):
            pods.pop(uid, None)
            if not pods:
                del self.nominated[node]


def _note(counted: dict[K, Counter[str]], what: K, node: str, sign: int) -> None:
    found = counted.setdefault(what, Counter())
    found[node] += sign
    if not found[node]:
        del found[node]
    if not found:
        del counted[what]
