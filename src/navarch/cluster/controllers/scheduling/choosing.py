"""One decision: the best node for a pod, or why there is none."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from navarch.cluster.controllers.scheduling.filters import reason_against
from navarch.cluster.controllers.scheduling.near import near_filter
from navarch.cluster.controllers.scheduling.nodes import NodeState
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.cluster.controllers.scheduling.scores import preference, scores, soft_taints
from navarch.cluster.controllers.scheduling.spread import spread_filter
from navarch.cluster.controllers.scheduling.world import World

_NO_PORTS: Final = "node(s) didn't have free ports for the requested pod ports"
_SHAPES_KEPT: Final = 256

Verdict = Callable[[str], str]
VolumeFilter = Callable[[PodInfo], Verdict | None]
"""Says of nodes why the pod's volumes cannot be used there; None if it has none. Raises `Unfit` if no node will do."""


class Unfit(Exception):  # noqa: N818 - it is no error: the pod has to wait
    """The pod can be on no node at all, whatever nodes there are."""


@dataclass(slots=True)
class Refused:
    """Why no node takes the pod: reasons by node, and whether it would help if pods went."""

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
    """The nodes that suit pods of one shape by themselves, and what speaks for and against some of them."""

    def __init__(self, world: World, pod: PodInfo) -> None:
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
    """Decides where pods go, by what the world is at that moment."""

    def __init__(self, world: World, rng: random.Random, volumes: VolumeFilter = lambda _: None) -> None:
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
        """Whether that node takes the pod as the world is now."""
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
