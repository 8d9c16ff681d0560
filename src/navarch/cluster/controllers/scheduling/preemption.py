"""Making room: which pods of lower priority have to go so that one of higher priority can be there."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

from navarch.cluster.controllers.scheduling.choosing import Chooser, Refused, explained
from navarch.cluster.controllers.scheduling.pods import PodInfo
from navarch.cluster.controllers.scheduling.world import World

__all__ = ["Eviction", "make_room", "no_room_message"]

_NO_VICTIMS: Final = "No preemption victims found for incoming pod"
_NO_CLAIMS: Final = "no new claims to deallocate"
"""Said of dynamically allocated devices, by all pods that wait."""
_NO_HELP: Final = "Preemption is not helpful for scheduling"


@dataclass(frozen=True, slots=True)
class Eviction:
    """A node, and those who have to leave it."""

    node: str
    victims: tuple[PodInfo, ...]

    def harm(self) -> tuple[int, int, int]:
        """How bad it is: first the highest priority that is hit, then all of them, then how many."""
        priorities = [pod.priority for pod in self.victims]
        return (max(priorities), sum(priorities), len(priorities))


def make_room(world: World, chooser: Chooser, pod: PodInfo, refused: Refused) -> Eviction | None:
    """The eviction that harms least; None if none helps, or the pod may not preempt."""
    if not pod.may_preempt or refused.outright or not world.has_below(pod.priority):
        return None
    nodes = [name for name in refused.reasons if name not in refused.hopeless]
    found = filter(None, (_on(world, chooser, pod, name) for name in nodes))
    return min(found, key=Eviction.harm, default=None)


def _on(world: World, chooser: Chooser, pod: PodInfo, node: str) -> Eviction | None:
    """All that are of lower priority would go; then as many as possible stay, the most important first."""
    lower = [each for each in world.nodes[node].pods.values() if each.priority < pod.priority]
    if not lower:
        return None
    with world.without(lower):
        if not chooser.fits(pod, node):
            return None
        victims = list(_victims(world, chooser, pod, node, lower))
    return Eviction(node, tuple(victims))


def _victims(world: World, chooser: Chooser, pod: PodInfo, node: str, lower: Iterable[PodInfo]) -> list[PodInfo]:
    spared: list[PodInfo] = []
    victims: list[PodInfo] = []
    for each in sorted(lower, key=lambda one: (-one.priority, one.created)):
        world.add_pod(each)
        if chooser.fits(pod, node):
            spared.append(each)
        else:
            world.remove_pod(each.uid)
            victims.append(each)
    for each in spared:
        world.remove_pod(each.uid)
    return victims


def no_room_message(refused: Refused) -> str:
    """What Kubernetes says beside the reasons when nobody could be made to leave."""
    reasons = [_NO_HELP if name in refused.hopeless else _NO_VICTIMS for name in refused.reasons]
    if refused.outright:
        return "not found"
    return f"{_NO_CLAIMS}, preemption: {explained(refused.total, reasons)}" if refused.total else ""
