"""Which of several nodes suits a pod best: scores from 0 to 100 each, weighed as Kubernetes does."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Final

from navarch.cluster.controllers.scheduling.amounts import CPU, MEMORY
from navarch.cluster.controllers.scheduling.filters import matches_term, tolerates
from navarch.cluster.controllers.scheduling.near import liking
from navarch.cluster.controllers.scheduling.nodes import NodeInfo, NodeState
from navarch.cluster.controllers.scheduling.pods import PodInfo, affinity_of, tolerations_of
from navarch.cluster.controllers.scheduling.spread import crowding
from navarch.cluster.controllers.scheduling.world import World

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
    """How many taints would rather keep the pod out."""
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


def scores(world: World, pod: PodInfo, nodes: Sequence[NodeState], fixed: Mapping[str, tuple[int, int]]) -> list[float]:
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
