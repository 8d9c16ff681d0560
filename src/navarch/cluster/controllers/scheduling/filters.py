"""Filters on a node alone: node selectors, node affinity, taints."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Final

from navarch.cluster.controllers.pod_info import PodInfo, affinity_of, tolerations_of
from navarch.cluster.controllers.scheduling.node_info import NodeInfo
from navarch.k8s.core.v1 import NodeSelector, NodeSelectorRequirement, NodeSelectorTerm, Taint, Toleration

_KEEPING_OUT: Final = frozenset({"NoSchedule", "NoExecute"})
_UNSCHEDULABLE: Final = Taint(key="node.kubernetes.io/unschedulable", effect="NoSchedule")
_NAME: Final = "metadata.name"


def reason_against(pod: PodInfo, node: NodeInfo) -> str:
    """Why the node does not suit the pod, in Kubernetes' words; empty if it does."""
    tolerations = tolerations_of(pod.tolerations)
    if node.is_unschedulable and not tolerates(tolerations, _UNSCHEDULABLE):
        return "node(s) were unschedulable"
    if untolerated(node.taints, tolerations) is not None:
        return "node(s) had untolerated taint(s)"
    if not matches_affinity(pod, node):
        return "node(s) didn't match Pod's node affinity/selector"
    return ""


def untolerated(taints: Iterable[Taint], tolerations: Iterable[Toleration]) -> Taint | None:
    """The first taint that keeps the pod out."""
    return next((each for each in taints if each.effect in _KEEPING_OUT and not tolerates(tolerations, each)), None)


def tolerates(tolerations: Iterable[Toleration], taint: Taint) -> bool:
    """Returns True if one of the tolerations is for this taint."""
    return any(_is_for(each, taint) for each in tolerations)


def _is_for(toleration: Toleration, taint: Taint) -> bool:
    if toleration.effect and toleration.effect != taint.effect:
        return False
    if toleration.key and toleration.key != taint.key:
        return False
    match toleration.operator or "Equal":
        case "Exists":
            return True
        case "Equal":
            return bool(toleration.key) and (toleration.value or "") == (taint.value or "")
        case "Lt" | "Gt" as operator:
            return _compares(operator, taint.value or "", toleration.value or "")
        case _:
            return False


def matches_affinity(pod: PodInfo, node: NodeInfo) -> bool:
    """Returns True if the node has the labels that the pod's selector and its required node affinity ask for."""
    if any(node.labels.get(name) != value for name, value in pod.selector):
        return False
    affinity = affinity_of(pod.affinity).node_affinity
    required = affinity.required_during_scheduling_ignored_during_execution if affinity is not None else None
    return required is None or matches_node_selector(required, node.labels, node.name)


def matches_node_selector(selector: NodeSelector, labels: Mapping[str, str], name: str) -> bool:
    """Returns True if one of the terms matches; none at all matches nothing."""
    return any(matches_term(term, labels, name) for term in selector.node_selector_terms)


def matches_term(term: NodeSelectorTerm, labels: Mapping[str, str], name: str) -> bool:
    """Returns True if all requirements hold; an empty term matches nothing."""
    requirements = [*_looked_at(term.match_expressions, labels), *_looked_at(term.match_fields, {_NAME: name})]
    return bool(requirements) and all(requirements)


def _looked_at(requirements: Iterable[NodeSelectorRequirement] | None, labels: Mapping[str, str]) -> Iterator[bool]:
    for requirement in requirements or ():
        yield _holds(requirement, labels)


def _holds(requirement: NodeSelectorRequirement, labels: Mapping[str, str]) -> bool:
    actual, values = labels.get(requirement.key), requirement.values or []
    match requirement.operator:
        case "In":
            return actual in values
        case "NotIn":
            return actual not in values
        case "Exists":
            return actual is not None
        case "DoesNotExist":
            return actual is None
        case "Gt" | "Lt" as operator:
            return actual is not None and len(values) == 1 and _compares(operator, actual, values[0])
        case _:
            return False


@lru_cache(maxsize=1024)
def _compares(operator: str, actual: str, bound: str) -> bool:
    """Whole numbers only: what is none matches nothing."""
    try:
        left, right = int(actual), int(bound)
    except ValueError:
        return False
    return left > right if operator == "Gt" else left < right
