"""Which nodes a DaemonSet's pods belong on, and how one is made for a node."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple

from navarch.cluster.controllers.scheduling.filters import matches_node_selector, tolerates
from navarch.cluster.controllers.workloads.making import pod_of, prefix_of
from navarch.k8s.apps.v1 import DaemonSet
from navarch.k8s.core.v1 import (
    Affinity,
    Node,
    NodeAffinity,
    NodeSelector,
    NodeSelectorRequirement,
    NodeSelectorTerm,
    Pod,
    PodSpec,
    Toleration,
)

HASH = "controller-revision-hash"

_GENERATION = "pod-template-generation"
_GENERATION_NOTE = "deprecated.daemonset.template.generation"
_NAME = "metadata.name"
_TOLERATED = {
    "node.kubernetes.io/not-ready": "NoExecute",
    "node.kubernetes.io/unreachable": "NoExecute",
    "node.kubernetes.io/disk-pressure": "NoSchedule",
    "node.kubernetes.io/memory-pressure": "NoSchedule",
    "node.kubernetes.io/pid-pressure": "NoSchedule",
    "node.kubernetes.io/unschedulable": "NoSchedule",
}
_NO_NETWORK = "node.kubernetes.io/network-unavailable"


class Fit(NamedTuple):
    """Whether a node should get a pod, and whether one that is there may stay."""

    runs: bool
    stays: bool


def fit_of(daemon_set: DaemonSet, node: Node) -> Fit:
    """By the node's name, labels and taints; nothing else counts, not even whether there is room."""
    spec = daemon_set.spec.template.spec
    if spec.node_name not in {None, "", node.name} or not _is_selected(spec, node):
        return Fit(runs=False, stays=False)
    tolerations = _tolerations(spec)
    against = {each.effect for each in node.spec.taints or () if not tolerates(tolerations, each)}
    return Fit(runs=not against & {"NoSchedule", "NoExecute"}, stays="NoExecute" not in against)


def _is_selected(spec: PodSpec, node: Node) -> bool:
    if any(node.labels.get(key) != value for key, value in (spec.node_selector or {}).items()):
        return False
    affinity = spec.affinity.node_affinity if spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return required is None or matches_node_selector(required, node.labels, node.name)


def _tolerations(spec: PodSpec) -> list[Toleration]:
    """What the template tolerates, and what befalls every node at times: a daemon stays through all that."""
    wanted = {**_TOLERATED, **({_NO_NETWORK: "NoSchedule"} if spec.host_network else {})}
    added = [Toleration(key=key, operator="Exists", effect=effect) for key, effect in wanted.items()]
    kept = [each for each in spec.tolerations or () if not any(_is_same(each, other) for other in added)]
    return kept + added


def _is_same(one: Toleration, other: Toleration) -> bool:
    """Whether they are about the same taint; how long it is tolerated is another matter."""
    return (one.key, one.operator or "Equal", one.effect, one.value or "") == (
        other.key,
        other.operator,
        other.effect,
        other.value or "",
    )


def new_pod(daemon_set: DaemonSet, template_hash: str, node: str) -> Pod:
    """A pod for that node: the scheduler puts it there and nowhere else."""
    pod = pod_of(daemon_set.spec.template, prefix=prefix_of(daemon_set))
    generation = daemon_set.annotations.get(_GENERATION_NOTE)
    pod.labels = {**pod.labels, HASH: template_hash, **({_GENERATION: generation} if generation else {})}
    pod.spec.tolerations = _tolerations(pod.spec)
    affinity = pod.spec.affinity or Affinity()
    affinity.node_affinity = affinity.node_affinity or NodeAffinity()
    term = NodeSelectorTerm(match_fields=[NodeSelectorRequirement(key=_NAME, operator="In", values=[node])])
    affinity.node_affinity.required_during_scheduling_ignored_during_execution = NodeSelector(
        node_selector_terms=[term]
    )
    pod.spec.affinity = affinity
    return pod


def is_current(daemon_set: DaemonSet, template_hash: str, pod: Pod) -> bool:
    """Whether the pod was made from the template as it is now."""
    generation = daemon_set.annotations.get(_GENERATION_NOTE)
    same = generation is not None and pod.labels.get(_GENERATION) == generation
    return same or pod.labels.get(HASH) == template_hash


def node_of(pod: Pod) -> str | None:
    """The node that the pod is on, or is meant for."""
    if pod.spec.node_name:
        return pod.spec.node_name
    affinity = pod.spec.affinity.node_affinity if pod.spec.affinity else None
    required = affinity.required_during_scheduling_ignored_during_execution if affinity else None
    return next(_named(required.node_selector_terms if required else ()), None)


def _named(terms: Iterable[NodeSelectorTerm]) -> Iterator[str]:
    for term in terms:
        for field in term.match_fields or ():
            if (field.key, field.operator, len(field.values or ())) == (_NAME, "In", 1):
                yield from field.values or ()
