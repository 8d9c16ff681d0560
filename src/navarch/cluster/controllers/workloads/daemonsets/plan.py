"""Plans which pods of a DaemonSet to create and delete next, within the limits of the update strategy."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from navarch.cluster.controllers.scheduling.filters import matches_node_selector, tolerates
from navarch.cluster.controllers.workloads.pod_creation import pod_of, prefix_of
from navarch.cluster.controllers.workloads.pods import is_deleting, is_ready, is_terminal
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
    """Says whether a node should get a pod, and whether an existing pod may stay."""

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
    """Returns True if they are about the same taint; how long it is tolerated is another matter."""
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
    """Returns True if the pod was made from the template as it is now."""
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
        for requirement in term.match_fields or ():
            if (requirement.key, requirement.operator, len(requirement.values or ())) == (_NAME, "In", 1):
                yield from requirement.values or ()


@dataclass(slots=True)
class DaemonPlan:
    """The nodes that get a pod, and the pods to delete."""

    create: list[str] = field(default_factory=list)
    delete: list[Pod] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.create or self.delete)


class RolloutLimits(NamedTuple):
    """The number of nodes that may have two pods at a time (surge), and none (unavailable)."""

    surge: int
    unavailable: int


@dataclass(frozen=True, slots=True)
class Sight:
    """The nodes with their eligibility and pods, and predicates on pods."""

    fits: Mapping[str, Fit]
    pods: Mapping[str, Sequence[Pod]]
    is_current: Callable[[Pod], bool]
    is_available: Callable[[Pod], bool]

    @property
    def wanted(self) -> int:
        """Returns how many nodes should have a pod."""
        return sum(fit.runs for fit in self.fits.values())


def oldest_first(pods: Iterable[Pod]) -> list[Pod]:
    """Those that are on their node already before those that are not."""
    return sorted(pods, key=_age)


def _age(pod: Pod) -> tuple[bool, float, str]:
    created = pod.metadata.creation_timestamp
    return not pod.spec.node_name, (created.timestamp() if created else 0.0), pod.name


def to_keep_up(sight: Sight, *, surging: bool, may_replace: Callable[[str, Pod], bool]) -> DaemonPlan:
    """One pod for every node that should have one, and none for the others.

    A pod that has ended is replaced, one that failed only if it `may_replace` it yet.
    """
    plan = DaemonPlan()
    for node, fit in sight.fits.items():
        pods = sight.pods.get(node, ())
        if fit.runs and not pods:
            plan.create.append(node)
        elif fit.stays:
            _tidy(node, fit, sight, plan, surging=surging, may_replace=may_replace)
        else:
            plan.delete.extend(pod for pod in pods if not is_deleting(pod))
    nowhere = (pods for node, pods in sight.pods.items() if node not in sight.fits)
    plan.delete.extend(pod for pods in nowhere for pod in pods if not pod.spec.node_name and not is_deleting(pod))
    return plan


def _tidy(
    node: str, fit: Fit, sight: Sight, plan: DaemonPlan, *, surging: bool, may_replace: Callable[[str, Pod], bool]
) -> None:
    staying = [pod for pod in sight.pods.get(node, ()) if not is_deleting(pod)]
    ended = [pod for pod in staying if is_terminal(pod)]
    plan.delete.extend(pod for pod in ended if pod.status.phase != "Failed" or may_replace(node, pod))
    running = oldest_first(pod for pod in staying if not is_terminal(pod))
    if not surging:
        plan.delete.extend(running[1:])
    elif not running and fit.runs:
        plan.create.append(node)
    else:
        plan.delete.extend(_superseded(running, sight))


def _superseded(running: Sequence[Pod], sight: Sight) -> list[Pod]:
    """While a node is renewed it has an old pod and a new one: until the new one serves, or the old one does not."""
    new = [pod for pod in running if sight.is_current(pod)]
    old = [pod for pod in running if not sight.is_current(pod)]
    surplus = [*new[1:], *old[1:]]
    if new and old and (not is_ready(old[0]) or sight.is_available(new[0])):
        surplus.append(old[0])
    return surplus


def to_renew(sight: Sight, limits: RolloutLimits) -> DaemonPlan:
    """Replaces pods of former templates, a few nodes at a time; those that do not serve are no loss."""
    return _with_surge(sight, limits) if limits.surge else _in_place(sight, limits)


def _in_place(sight: Sight, limits: RolloutLimits) -> DaemonPlan:
    unavailable, useless, candidates = 0, [], []
    for pods in sight.pods.values():
        pair = _pair(pods, sight)
        if pair is None or (pair.new is None) == (pair.old is None):
            unavailable += 1
        elif pair.old is None:
            unavailable += not sight.is_available(_known(pair.new))
        elif sight.is_available(pair.old):
            candidates.append(pair.old)
        else:
            useless.append(pair.old)
            unavailable += 1
    room = max(limits.unavailable - unavailable, 0)
    return DaemonPlan(delete=useless + candidates[:room])


class _NodePods(NamedTuple):
    new: Pod | None
    old: Pod | None


def _pair(pods: Iterable[Pod], sight: Sight) -> _NodePods | None:
    """The new and the old pod of a node; None if there are several of one kind."""
    staying = [pod for pod in pods if not is_deleting(pod)]
    new = [pod for pod in staying if sight.is_current(pod)]
    old = [pod for pod in staying if not sight.is_current(pod)]
    if len(new) > 1 or len(old) > 1:
        return None
    return _NodePods(new[0] if new else None, old[0] if old else None)


def _known(pod: Pod | None) -> Pod:
    assert pod is not None
    return pod


def _with_surge(sight: Sight, limits: RolloutLimits) -> DaemonPlan:
    seen = _ObservedNodes()
    for node, pods in sight.pods.items():
        _look_at(node, pods, sight, seen)
    spare = max(seen.available - sight.wanted, 0)
    room = max(limits.surge - seen.surging, 0)
    return DaemonPlan(create=seen.useless + seen.candidates[:room], delete=seen.superseded + seen.misplaced[:spare])


@dataclass(slots=True)
class _ObservedNodes:
    """What was found on the nodes so far: how many serve and how many have two pods; and those with an old pod.

    Of these, `useless` have one that does not serve, `candidates` one that does; `misplaced` serve where none should be,
    `superseded` are no longer needed.
    """

    available: int = 0
    surging: int = 0
    useless: list[str] = field(default_factory=list)
    candidates: list[str] = field(default_factory=list)
    misplaced: list[Pod] = field(default_factory=list)
    superseded: list[Pod] = field(default_factory=list)


def _look_at(node: str, pods: Iterable[Pod], sight: Sight, seen: _ObservedNodes) -> None:
    pair = _pair(pods, sight)
    serving = (pair.old or pair.new) if pair else None
    seen.available += serving is not None and sight.is_available(serving)
    if pair is None or (pair.old is not None and pair.new is not None and not sight.is_available(pair.new)):
        seen.surging += 1
    elif pair.old is not None and pair.new is not None:
        seen.superseded.append(pair.old)
    elif pair.old is not None:
        _place(node, pair.old, sight, seen)


def _place(node: str, old: Pod, sight: Sight, seen: _ObservedNodes) -> None:
    serves, fit = sight.is_available(old), sight.fits.get(node)
    if fit is not None and fit.runs:
        (seen.candidates if serves else seen.useless).append(node)
    else:
        (seen.misplaced if serves else seen.superseded).append(old)
