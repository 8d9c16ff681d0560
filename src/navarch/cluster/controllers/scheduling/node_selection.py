"""Selects the best node for a pod by filters and scores, or returns the reasons why there is none."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

from navarch.cluster.controllers.pod_info import CPU, MEMORY, PodInfo, affinity_of, tolerations_of
from navarch.cluster.controllers.scheduling.filters import matches_term, reason_against, tolerates
from navarch.cluster.controllers.scheduling.node_info import NodeInfo, NodeState
from navarch.cluster.controllers.scheduling.snapshot import SchedulerSnapshot
from navarch.cluster.controllers.scheduling.topology import crowding, liking, near_filter, spread_filter

_MOST: Final = 100.0
_TAINTS, _AFFINITY, _SPREAD, _NEAR = 3.0, 2.0, 2.0, 2.0
_SOFT: Final = "PreferNoSchedule"


def room(state: NodeState, cpu: int, memory: int) -> float:
    """How much would be left on the node, and how evenly: two scores, since nobody asks for one without the other."""
    known = state.scores.get((cpu, memory))
    if known is None:
        cpu_share, memory_share = _share(state, CPU, cpu), _share(state, MEMORY, memory)
        left, evenness = 1.0 - (cpu_share + memory_share) / 2, 1.0 - abs(cpu_share - memory_share) / 2
        known = state.scores[(cpu, memory)] = (left + evenness) * _MOST
    return known


def _share(state: NodeState, name: str, asked: int) -> float:
    """How much of it would be taken, from 0 to 1."""
    allocatable = state.info.allocatable.get(name, 0)
    taken = state.scored[name] + asked
    return taken / allocatable if taken < allocatable else 1.0


def preference(pod: PodInfo, node: NodeInfo) -> int:
    """The weight of all preferred terms of node affinity that match."""
    affinity = affinity_of(pod.affinity).node_affinity
    terms = affinity.preferred_during_scheduling_ignored_during_execution if affinity is not None else None
    return sum(each.weight for each in terms or () if matches_term(each.preference, node.labels, node.name))


def soft_taints(pod: PodInfo, node: NodeInfo) -> int:
    """Returns how many taints would rather keep the pod out."""
    tolerations = [each for each in tolerations_of(pod.tolerations) if each.effect in {None, "", _SOFT}]
    return sum(taint.effect == _SOFT and not tolerates(tolerations, taint) for taint in node.taints)


def normalized(values: Sequence[float], *, lowest: float | None = None, is_reverse: bool = False) -> list[float]:
    """The values from 0 to 100, 100 for the best. Without `lowest` the smallest is 0; all are the best if none differ."""
    least = min(values) if lowest is None else lowest
    span = max(values) - least
    if not span:
        return [_MOST if is_reverse else 0.0] * len(values)
    scaled = ((value - least) * _MOST / span for value in values)
    return [_MOST - value for value in scaled] if is_reverse else list(scaled)


def scores(
    world: SchedulerSnapshot, pod: PodInfo, nodes: Sequence[NodeState], fixed: Mapping[str, tuple[int, int]]
) -> list[float]:
    """The score of each node. `fixed` has the preference and the soft taints of those nodes that have any."""
    cpu, memory = pod.at_least.get(CPU, 0), pod.at_least.get(MEMORY, 0)
    total = [room(state, cpu, memory) for state in nodes]
    if fixed:
        _add(total, _AFFINITY, normalized([fixed.get(state.name, (0, 0))[0] for state in nodes], lowest=0))
        taints = [fixed.get(state.name, (0, 0))[1] for state in nodes]
        _add(total, _TAINTS, normalized(taints, lowest=0, is_reverse=True))
    if (liked := liking(world, pod)) is not None:
        _add(total, _NEAR, normalized(_each(liked, nodes)))
    if (crowd := crowding(world, pod, [state.name for state in nodes])) is not None:
        _add(total, _SPREAD, normalized(_each(crowd, nodes), is_reverse=True))
    return total


def _each(score: Callable[[str], float], nodes: Iterable[NodeState]) -> list[float]:
    return [score(state.name) for state in nodes]


def _add(total: list[float], weight: float, more: Sequence[float]) -> None:
    for place, score in enumerate(more):
        total[place] += weight * score


_NO_PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
_SHAPES_KEPT: Final = 256

Verdict = Callable[[str], str]
VolumeFilter = Callable[[PodInfo], Verdict | None]
"""Says of nodes why the pod's volumes cannot be used there; None if it has none. Raises `Unfit` if no node will do."""


class Unfit(Exception):  # noqa: N818 - it is no error: the pod has to wait
    """No node can ever run the pod."""


@dataclass(slots=True)
class Refused:
    """The reasons of each node against the pod, and whether preemption would help."""

    total: int
    reasons: dict[str, list[str]] = field(default_factory=dict)
    hopeless: set[str] = field(default_factory=set)
    """Nodes that would not take the pod even if they were empty."""
    outright: str = ""
    """Why it can be nowhere."""

    def message(self) -> str:
        """In Kubernetes' words."""
        if self.outright:
            return f"0/{self.total} nodes are available: {self.outright}."
        return explained(self.total, [text for reasons in self.reasons.values() for text in reasons])


def explained(total: int, reasons: Iterable[str]) -> str:
    """What is said of nodes that do not take a pod.

    >>> explained(3, ["Insufficient cpu", "node(s) were unschedulable", "node(s) were unschedulable"])
    '0/3 nodes are available: 1 Insufficient cpu, 2 node(s) were unschedulable.'
    """
    if not total:
        return "no nodes available to schedule pods"
    counted = sorted(f"{count} {reason}" for reason, count in Counter(reasons).items())
    return f"0/{total} nodes are available: {', '.join(counted)}."


class _Suited:
    """The nodes that pass the static filters for pods of one shape, with their static scores."""

    def __init__(self, world: SchedulerSnapshot, pod: PodInfo) -> None:
        self.generation = world.generation
        self.nodes: list[NodeState] = []
        self.refused: dict[str, str] = {}
        self.fixed: dict[str, tuple[int, int]] = {}
        for name, state in world.nodes.items():
            if reason := reason_against(pod, state.info):
                self.refused[name] = reason
                continue
            self.nodes.append(state)
            fixed = (preference(pod, state.info), soft_taints(pod, state.info))
            if any(fixed):
                self.fixed[name] = fixed


class Chooser:
    """Selects nodes by the current snapshot."""

    def __init__(self, world: SchedulerSnapshot, rng: random.Random, volumes: VolumeFilter = lambda _: None) -> None:
        self._world = world
        self._rng = rng
        self._volumes = volumes
        self._suited: dict[object, _Suited] = {}

    def choose(self, pod: PodInfo) -> str | Refused:
        """The name of the best node; of several that are equally good, any. Otherwise why there is none."""
        refused = Refused(len(self._world.nodes))
        suited = self._suited_to(pod)
        try:
            fitting = list(self._fitting(pod, suited.nodes, refused))
        except Unfit as unfit:
            refused.outright = str(unfit)
            return refused
        if not fitting:
            refused.reasons.update((name, [reason]) for name, reason in suited.refused.items())
            refused.hopeless.update(suited.refused)
            return refused
        return self._best(pod, fitting, suited)

    def fits(self, pod: PodInfo, node: str) -> bool:
        """Returns True if that node takes the pod as the world is now."""
        state = self._world.nodes.get(node)
        if state is None or node in self._suited_to(pod).refused:
            return False
        return any(True for _ in self._fitting(pod, [state], Refused(1)))

    def _suited_to(self, pod: PodInfo) -> _Suited:
        found = self._suited.get(pod.shape)
        if found is None or found.generation != self._world.generation:
            if len(self._suited) >= _SHAPES_KEPT:
                self._suited.clear()
            found = self._suited[pod.shape] = _Suited(self._world, pod)
        return found

    def _fitting(self, pod: PodInfo, nodes: Sequence[NodeState], refused: Refused) -> Iterable[NodeState]:
        """Those of the nodes that have room; of the others, why not, in `refused`, if no node is left."""
        world = self._world
        volumes = self._volumes(pod) if pod.claims else None
        others = [each for each in (spread_filter(world, pod), near_filter(world, pod)) if each is not None]
        if not (pod.ports or world.nominated or others) and volumes is None:
            roomy = [state for state in nodes if state.has_room(pod.requests)]
            if roomy:
                return roomy
        return self._judged(pod, nodes, volumes, others, refused)

    def _judged(
        self,
        pod: PodInfo,
        nodes: Iterable[NodeState],
        volumes: Verdict | None,
        others: Sequence[Verdict],
        refused: Refused,
    ) -> Iterator[NodeState]:
        world = self._world
        for state in nodes:
            reasons = [_NO_PORTS] if pod.ports and not state.has_free(pod.ports) else []
            reasons = reasons or (self._shortages(pod, state) if world.nominated else state.shortages(pod.requests))
            if reasons and state.is_too_small(pod.requests):
                refused.hopeless.add(state.name)
            if not reasons and volumes is not None and (reason := volumes(state.name)):
                reasons = [reason]
                refused.hopeless.add(state.name)
            if not reasons:
                reasons = [reason for verdict in others if (reason := verdict(state.name))][:1]
            if reasons:
                refused.reasons[state.name] = reasons
            else:
                yield state

    def _shortages(self, pod: PodInfo, state: NodeState) -> list[str]:
        nominated = self._world.nominated.get(state.name, {})
        ahead = [each for each in nominated.values() if each.uid != pod.uid and each.priority >= pod.priority]
        for each in ahead:
            state.add(each)
        try:
            return state.shortages(pod.requests)
        finally:
            for each in ahead:
                state.remove(each.uid)

    def _best(self, pod: PodInfo, nodes: list[NodeState], suited: _Suited) -> str:
        if len(nodes) == 1:
            return nodes[0].name
        if pod.nominated and any(state.name == pod.nominated for state in nodes):
            return pod.nominated
        found = scores(self._world, pod, nodes, suited.fixed)
        best = max(found) - 1e-9
        return self._rng.choice([state.name for state, score in zip(nodes, found, strict=True) if score >= best])
