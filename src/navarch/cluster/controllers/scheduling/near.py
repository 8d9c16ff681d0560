"""Pods that are to be near others or far from them: pod affinity and anti-affinity."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping

from navarch.cluster.controllers.scheduling.counts import domains
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.cluster.controllers.scheduling.terms import Near
from navarch.cluster.controllers.scheduling.world import World

_NOT_NEAR = "node(s) didn't match pod affinity rules"
_NOT_FAR = "node(s) didn't match pod anti-affinity rules"
_UNWANTED = "node(s) didn't satisfy existing pods anti-affinity rules"

Verdict = Callable[[str], str]
"""Why not on the node of that name; empty if it can be there."""


def near_filter(world: World, pod: PodInfo) -> Verdict | None:
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


def _counted(world: World, term: Near) -> Counter[str]:
    return _spread(world, term, world.counts.by_node(term.pods))


def _spread(world: World, term: Near, counts: Mapping[str, int]) -> Counter[str]:
    return domains(counts, world.places(term.topology_key))


def _is_near(places: Mapping[str, str], counts: Counter[str], node: str, *, is_first: bool) -> bool:
    """The first of several that want to be near each other may be anywhere, in some domain."""
    domain = places.get(node)
    return domain is not None and (is_first or counts[domain] > 0)


def _is_there(places: Mapping[str, str], counts: Counter[str], node: str) -> bool:
    domain = places.get(node)
    return domain is not None and counts[domain] > 0


def liking(world: World, pod: PodInfo) -> Callable[[str], int] | None:
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
