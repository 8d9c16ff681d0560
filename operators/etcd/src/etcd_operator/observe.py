"""Observes a cluster: reads pods, claims, nodes and etcd into one `Observation`."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Final

from etcd_operator.etcd import Etcd
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import growth_patch
from etcd_operator.manifests.pods import CLUSTER, FORCE, STATE, TEMPLATE, VERSION
from etcd_operator.manifests.resources import SURVIVOR
from etcd_operator.observation import MemberReport, NodeLoss, Observation, ObservedClaim, ObservedPod, PodTrouble
from etcd_operator.versions import EtcdVersion
from navarch import Context
from navarch.errors import ApiError
from navarch.k8s.core.v1 import ContainerStatus, Node, PersistentVolumeClaim, Pod

_KNOWN_FOR: Final = timedelta(seconds=5)
_SILENT: Final = frozenset({"node.kubernetes.io/not-ready", "node.kubernetes.io/unreachable"})


class NodeHealth:
    """Looks up nodes in the API server, at most once every few seconds per node.

    Without permission to read nodes it reports no loss: members on lost nodes are then replaced after the usual time.
    """

    def __init__(self) -> None:
        self._known: dict[str, tuple[datetime, NodeLoss]] = {}

    async def lost(self, ctx: Context, name: str) -> NodeLoss:
        """Returns how the node was lost; empty if it is healthy or unknown."""
        now = ctx.now()
        self._known = {each: known for each, known in self._known.items() if now - known[0] < _KNOWN_FOR}
        if name not in self._known:
            self._known[name] = now, await _asked(name, ctx)
        return self._known[name][1]


async def _asked(name: str, ctx: Context) -> NodeLoss:
    try:
        node = await ctx.get(Node, name)
    except ApiError:
        return ""
    if node is None:
        return "gone"
    is_silent = any(taint.key in _SILENT and taint.effect == "NoExecute" for taint in node.spec.taints or ())
    return "unreachable" if is_silent else ""


_NO_IMAGE: Final = frozenset(
    {"CreateContainerConfigError", "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"}
)
_FATAL: Final = re.compile(r'"level":"(?:fatal|panic)"|^panic: |permanently removed|^[-0-9]+ [0-9:.]+ C \| ')
"""Matches fatal log lines of etcd 3.5 and later (JSON), and of earlier versions."""
_DISK: Final = re.compile(
    r"cannot fetch cluster info from peer urls|permanently removed from the cluster|crc mismatch|unexpected EOF|wal: |walpb: "
    r"|snap: |failed to (?:read|recover|open|find) |invalid database|file does not exist|corrupt|is out of range"
    r"|cannot use none as id|freepages|freelist|input/output error|structure needs cleaning",
    re.IGNORECASE,
)
_STRANDED: Final = re.compile(
    r"0/(\d+) nodes are available: \1 node\(s\) (?:didn't match PersistentVolume's node affinity|had volume node affinity)"
)
_LONGEST: Final = 160
_RAN_WELL: Final = timedelta(minutes=2)


NodeLookup = Callable[[str], Awaitable[NodeLoss]]
"""Returns how the node of that name was lost."""


async def observe(
    cluster: EtcdCluster,
    pods: list[Pod],
    claims: list[PersistentVolumeClaim],
    etcd: Etcd,
    *,
    node_lost: NodeLookup,
    now: datetime,
) -> Observation:
    """Returns the current state of the cluster; the member list comes from a linearizable read if there is a quorum."""
    reports = await etcd.reports()
    agreed = await etcd.members(agreed=True) if any(report.leader for report in reports.values()) else None
    auth = await etcd.auth()
    remembered = await etcd.members(agreed=False) if reports and agreed is None else None
    seen = Observation(
        now=now,
        pods={pod.name: await _with_node(pod, reports, node_lost) for pod in pods},
        claims={claim.name: _claim_seen(cluster, claim) for claim in claims},
        reports=reports,
        members=agreed or remembered or (),
        agreed=agreed is not None,
        auth=auth,
        alarms=await etcd.alarms() if agreed else (),
        agreed_version=await etcd.agreed_version() if agreed and _is_upgraded(cluster, reports) else "",
    )
    return await _compared(cluster, seen, etcd)


def _is_upgraded(cluster: EtcdCluster, reports: Mapping[str, MemberReport]) -> bool:
    wanted = EtcdVersion.of(cluster.spec.version)
    return any(EtcdVersion.of(report.version).minor != wanted.minor for report in reports.values() if report.version)


async def _with_node(pod: Pod, reports: Mapping[str, MemberReport], node_lost: NodeLookup) -> ObservedPod:
    """Observes the pod; looks up its node if the member has served before and does not answer."""
    seen = observe_pod(pod)
    if seen.first or pod.name in reports or not pod.spec.node_name:
        return seen
    return replace(seen, lost=await node_lost(pod.spec.node_name))


async def _compared(cluster: EtcdCluster, seen: Observation, etcd: Etcd) -> Observation:
    """Adds the key-space hash of each voter if a comparison is due and all voters run the same version.

    Different versions hash differently. Differing hashes are read twice, because a compaction may run between two reads.
    """
    reports = [seen.reports[member.name] for member in seen.healthy_voters]
    alike = len(reports) == len(seen.voters) > 1 and len({report.version for report in reports}) == 1
    if not seen.agreed or not alike or not _is_due(cluster, seen) or not EtcdVersion.of(reports[0].version).hashes_keys:
        return seen
    names, revision = [member.name for member in seen.voters], min(report.revision for report in reports)
    found = await etcd.fingerprints(names, revision)
    if len(set(found.values())) > 1:
        found = await etcd.fingerprints(names, revision)
    return replace(seen, compared=True, fingerprints=found)


def _is_due(cluster: EtcdCluster, seen: Observation) -> bool:
    """Reports whether a comparison is due: after the interval, or when etcd's alarm does not identify the corrupt member."""
    every, last = cluster.spec.healing.compare_every_seconds, cluster.status.compared_at
    is_time = every > 0 and (last is None or (seen.now - last).total_seconds() >= every)
    is_doubted = bool(seen.accused) and not seen.is_clear_who_is_corrupt
    return not cluster.spec.paused and (is_time or is_doubted)


def observe_pod(pod: Pod) -> ObservedPod:
    """Returns the state of the pod that planning depends on."""
    annotations: Mapping[str, str] = pod.annotations
    container = next((each for each in pod.status.container_statuses or [] if each.name == "etcd"), None)
    ready = _condition(pod, "Ready")
    is_ready = ready is not None and ready[0] == "True"
    first = annotations.get(STATE) == "new" or "," in annotations.get(CLUSTER, "")
    trouble, message = _trouble(pod, container) if not is_ready else ("", "")
    return ObservedPod(
        name=pod.name,
        ip=pod.status.pod_ip or "",
        running=container is not None and container.state is not None and container.state.running is not None,
        ready=is_ready,
        ending=pod.metadata.deletion_timestamp is not None,
        version=annotations.get(VERSION, ""),
        template=annotations.get(TEMPLATE, ""),
        first=first,
        peers=frozenset(annotations.get(CLUSTER, "").split(",")) if first else frozenset(),
        forced=annotations.get(FORCE) == "true",
        trouble="crash" if trouble == "disk" and first else trouble,
        restarts=_failures(container) if container is not None else 0,
        message=message,
        unready_since=None if is_ready else (ready[1] if ready else pod.metadata.creation_timestamp),
        lost="stranded" if _is_stranded(pod) else "",
    )


def _claim_seen(cluster: EtcdCluster, claim: PersistentVolumeClaim) -> ObservedClaim:
    return ObservedClaim(
        name=claim.name,
        ending=claim.metadata.deletion_timestamp is not None,
        lost=claim.status.phase == "Lost",
        small=growth_patch(cluster, claim) is not None,
        chosen=claim.annotations.get(SURVIVOR) == "true",
    )


def _condition(pod: Pod, type_: str) -> tuple[str, datetime | None, str] | None:
    for condition in pod.status.conditions or []:
        if condition.type == type_:
            return condition.status, condition.last_transition_time, condition.message or ""
    return None


def _trouble(pod: Pod, container: ContainerStatus | None) -> tuple[PodTrouble, str]:
    scheduled = _condition(pod, "PodScheduled")
    if scheduled is not None and scheduled[0] == "False":
        return "unschedulable", _short(scheduled[2])
    if container is None:
        return "", ""
    waiting = container.state.waiting if container.state else None
    if waiting is not None and waiting.reason in _NO_IMAGE:
        return "image", _short(f"{waiting.reason}: {waiting.message or ''}")
    return _last_end(container)


def _is_stranded(pod: Pod) -> bool:
    """Reports whether the scheduler found no node that can mount the pod's volume."""
    scheduled = _condition(pod, "PodScheduled")
    return scheduled is not None and scheduled[0] == "False" and _STRANDED.match(scheduled[2]) is not None


def _last_end(container: ContainerStatus) -> tuple[PodTrouble, str]:
    states = [state for state in (container.state, container.last_state) if state is not None and state.terminated]
    if not states or states[0].terminated is None:
        return "", ""
    end = states[0].terminated
    fatal = [line for line in (end.message or "").splitlines() if _FATAL.search(line)]
    if any(_DISK.search(line) for line in fatal):
        return "disk", _short(_said(fatal[-1]))
    return "crash", _short(_said(fatal[-1])) if fatal else f"etcd ended with exit code {end.exit_code}"


def _failures(container: ContainerStatus) -> int:
    """Returns the restart count; 0 if the container ran for a while before it ended, because then it can start."""
    for state in (container.state, container.last_state):
        end = state.terminated if state is not None else None
        if end is not None and end.started_at is not None and end.finished_at is not None:
            return 0 if end.finished_at - end.started_at >= _RAN_WELL else container.restart_count
    return container.restart_count


def _said(line: str) -> str:
    """Returns the message and the error of a line of etcd's log."""
    parts = re.findall(r'"(?:msg|error)":"((?:[^"\\]|\\.)*)"', line)
    return ": ".join(parts) or line


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
