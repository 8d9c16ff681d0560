"""Filters and scores on other pods: inter-pod affinity and topology spread constraints."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from navarch.api.selectors import Operator
from navarch.cluster.controllers.pod_info import PodInfo, constraints_of, tolerations_of
from navarch.cluster.controllers.scheduling.filters import matches_affinity, untolerated
from navarch.cluster.controllers.scheduling.pod_counts import (
    CountQuery,
    Near,
    OwnedPods,
    Selected,
    domains,
    selector_of,
    with_keys,
)
from navarch.cluster.controllers.scheduling.snapshot import SchedulerSnapshot
from navarch.k8s.core.v1 import TopologySpreadConstraint

_NOT_NEAR = "node(s) didn't match pod affinity rules"
_NOT_FAR = "node(s) didn't match pod anti-affinity rules"
_UNWANTED = "node(s) didn't satisfy existing pods anti-affinity rules"

Verdict = Callable[[str], str]
"""Why not on the node of that name; empty if it can be there."""


def near_filter(world: SchedulerSnapshot, pod: PodInfo) -> Verdict | None:
    """Says of nodes whether the pod is near enough to what it wants, and far enough from what it or others do not want.

    None if nobody wants anything.
    """
    wishes = world.terms.of(pod)
    unwanted = [term for term in world.kept_away if term.pods.matches(pod)]
    if not (wishes.near or wishes.far or unwanted):
        return None
    near = [(world.places(term.topology_key), _counted(world, term)) for term in wishes.near]
    far = [(world.places(term.topology_key), _counted(world, term)) for term in wishes.far]
    kept_away = [(world.places(term.topology_key), _spread(world, term, world.kept_away[term])) for term in unwanted]
    is_first = not any(counts for _, counts in near) and all(term.pods.matches(pod) for term in wishes.near)

    def verdict(node: str) -> str:
        if not all(_is_near(places, counts, node, is_first=is_first) for places, counts in near):
            return _NOT_NEAR
        if any(_is_there(places, counts, node) for places, counts in far):
            return _NOT_FAR
        return _UNWANTED if any(_is_there(places, counts, node) for places, counts in kept_away) else ""

    return verdict


def _counted(world: SchedulerSnapshot, term: Near) -> Counter[str]:
    return _spread(world, term, world.counts.by_node(term.pods))


def _spread(world: SchedulerSnapshot, term: Near, counts: Mapping[str, int]) -> Counter[str]:
    return domains(counts, world.places(term.topology_key))


def _is_near(places: Mapping[str, str], counts: Counter[str], node: str, *, is_first: bool) -> bool:
    """The first of several that want to be near each other may be anywhere, in some domain."""
    domain = places.get(node)
    return domain is not None and (is_first or counts[domain] > 0)


def _is_there(places: Mapping[str, str], counts: Counter[str], node: str) -> bool:
    domain = places.get(node)
    return domain is not None and counts[domain] > 0


def liking(world: SchedulerSnapshot, pod: PodInfo) -> Callable[[str], int] | None:
    """How well each node suits what the pod would like, and what those that are there would like of it; None if nothing."""
    wishes = world.terms.of(pod)
    weighed = [(term, weight, world.counts.by_node(term.pods)) for term, weight in wishes.liked]
    weighed += [(term, weight, counts) for (term, weight), counts in world.liked.items() if term.pods.matches(pod)]
    if not weighed:
        return None
    found = [
        (world.places(term.topology_key), _spread(world, term, counts), weight) for term, weight, counts in weighed
    ]

    def score(node: str) -> int:
        return sum(weight * counts[places[node]] for places, counts, weight in found if node in places)

    return score


_UNEVEN: Final = "node(s) didn't match pod topology spread constraints"
_NO_LABEL: Final = "node(s) didn't match pod topology spread constraints (missing required label)"
_HOSTNAME: Final = "kubernetes.io/hostname"
_BY_DEFAULT: Final = ((_HOSTNAME, 3), ("topology.kubernetes.io/zone", 5))
"""How pods of one controller are spread, without anybody asking for it."""


@dataclass(frozen=True, slots=True)
class _Measured:
    """One spread constraint, and the number of pods in each eligible domain."""

    places: Mapping[str, str]
    counts: Counter[str]
    least: int
    own: int
    most_skew: int

    def reason_against(self, node: str) -> str:
        domain = self.places.get(node)
        if domain is None:
            return _NO_LABEL
        return _UNEVEN if self.counts[domain] + self.own - self.least > self.most_skew else ""


def spread_filter(world: SchedulerSnapshot, pod: PodInfo) -> Callable[[str], str] | None:
    """Says of nodes why one more there would be too many; None if the pod does not mind."""
    constraints = [each for each in constraints_of(pod.constraints) if each.when_unsatisfiable == "DoNotSchedule"]
    if not constraints:
        return None
    measured = [_measured(world, pod, each, constraints) for each in constraints]

    def verdict(node: str) -> str:
        return next(filter(None, (each.reason_against(node) for each in measured)), "")

    return verdict


def _measured(
    world: SchedulerSnapshot,
    pod: PodInfo,
    constraint: TopologySpreadConstraint,
    all_of_them: Iterable[TopologySpreadConstraint],
) -> _Measured:
    question, places = _question(pod, constraint), world.places(constraint.topology_key)
    counting = {node: domain for node, domain in places.items() if _counts(world, pod, node, constraint, all_of_them)}
    counts = Counter(dict.fromkeys(counting.values(), 0))
    counts.update(domains(world.counts.by_node(question), counting))
    least = min(counts.values(), default=0) if len(counts) >= (constraint.min_domains or 1) else 0
    return _Measured(places, counts, least, int(question.matches(pod)), constraint.max_skew)


def _question(pod: PodInfo, constraint: TopologySpreadConstraint) -> Selected:
    labels = selector_of(constraint.label_selector)
    if constraint.label_selector is not None:
        labels = with_keys(labels, pod.labels, constraint.match_label_keys, Operator.IN)
    return Selected(frozenset((pod.namespace,)), labels, with_deleting=False)


def _counts(
    world: SchedulerSnapshot,
    pod: PodInfo,
    node: str,
    constraint: TopologySpreadConstraint,
    all_of_them: Iterable[TopologySpreadConstraint],
) -> bool:
    """Whether the node counts when domains are compared: it has all labels, and the pod could be there."""
    info = world.nodes[node].info
    if any(each.topology_key not in info.labels for each in all_of_them):
        return False
    if constraint.node_affinity_policy != "Ignore" and not matches_affinity(pod, info):
        return False
    honours_taints = constraint.node_taints_policy == "Honor"
    return not honours_taints or untolerated(info.taints, tolerations_of(pod.tolerations)) is None


def crowding(world: SchedulerSnapshot, pod: PodInfo, nodes: Collection[str]) -> Callable[[str], float] | None:
    """Returns how many of the pod's like are where each of `nodes` is: less is better. None if it does not matter."""
    asked = [each for each in constraints_of(pod.constraints) if each.when_unsatisfiable == "ScheduleAnyway"]
    wanted: list[tuple[str, int, CountQuery]]
    if asked:
        wanted = [(each.topology_key, each.max_skew, _question(pod, each)) for each in asked]
    elif pod.owner and not pod.constraints:
        wanted = [(key, skew, OwnedPods(pod.owner)) for key, skew in _BY_DEFAULT]
    else:
        return None
    found = [_weighed(world, key, skew, question, nodes) for key, skew, question in wanted]

    def crowd(node: str) -> float:
        total = 0.0
        for places, counts, weight, skew in found:
            if node in places:
                total += counts.get(places[node], 0) * weight + skew - 1
        return total

    return crowd


def _weighed(
    world: SchedulerSnapshot, topology_key: str, skew: int, question: CountQuery, nodes: Collection[str]
) -> tuple[Mapping[str, str], Mapping[str, int], float, int]:
    """A domain among many weighs more than one among few."""
    places, by_node = world.places(topology_key), world.counts.by_node(question)
    if topology_key == _HOSTNAME:
        return {node: node for node in nodes}, by_node, math.log(len(nodes) + 2), skew
    size = len({places[node] for node in nodes if node in places})
    return places, domains(by_node, places), math.log(size + 2), skew
