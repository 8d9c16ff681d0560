"""Looks at everything that the next step is decided by."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final

from etcd_operator.etcd import Etcd
from etcd_operator.kinds import EtcdCluster
from etcd_operator.manifests import grown
from etcd_operator.manifests.pods import CLUSTER, FORCE, STATE, TEMPLATE, VERSION
from etcd_operator.observation import ClaimSeen, Observation, PodSeen, Trouble
from navarch.k8s.core.v1 import ContainerStatus, PersistentVolumeClaim, Pod

__all__ = ["look", "pod_seen"]

_NO_IMAGE: Final = frozenset(
    {"CreateContainerConfigError", "ErrImageNeverPull", "ErrImagePull", "ImagePullBackOff", "InvalidImageName"}
)
_FATAL: Final = re.compile(r'"level":"(?:fatal|panic)"|^panic: |permanently removed|^[-0-9]+ [0-9:.]+ C \| ')
"""In the words of 3.5 and later, and in those of earlier ones."""
_DISK: Final = re.compile(
    r"cannot fetch cluster info from peer urls|permanently removed from the cluster|crc mismatch|unexpected EOF|wal: |walpb: "
    r"|snap: |failed to (?:read|recover|open|find) |invalid database|file does not exist|corrupt|is out of range"
    r"|cannot use none as id|freepages|freelist|input/output error|structure needs cleaning",
    re.IGNORECASE,
)
_LONGEST: Final = 160


async def look(
    cluster: EtcdCluster, pods: list[Pod], claims: list[PersistentVolumeClaim], etcd: Etcd, now: datetime
) -> Observation:
    """One value of all that is there now; members first hand, as a quorum knows them, where there is one."""
    voices = await etcd.voices()
    agreed = await etcd.members(agreed=True) if any(voice.leader for voice in voices.values()) else None
    remembered = await etcd.members(agreed=False) if voices and agreed is None else None
    return Observation(
        now=now,
        pods={pod.name: pod_seen(pod) for pod in pods},
        claims={claim.name: _claim_seen(cluster, claim) for claim in claims},
        voices=voices,
        members=agreed or remembered or (),
        agreed=agreed is not None,
        alarms=await etcd.alarms() if agreed else (),
    )


def pod_seen(pod: Pod) -> PodSeen:
    """What matters of a pod."""
    annotations: Mapping[str, str] = pod.annotations
    container = next((each for each in pod.status.container_statuses or [] if each.name == "etcd"), None)
    ready = _condition(pod, "Ready")
    is_ready = ready is not None and ready[0] == "True"
    first = annotations.get(STATE) == "new" or "," in annotations.get(CLUSTER, "")
    trouble, words = _trouble(pod, container) if not is_ready else ("", "")
    return PodSeen(
        name=pod.name,
        ip=pod.status.pod_ip or "",
        running=container is not None and container.state is not None and container.state.running is not None,
        ready=is_ready,
        ending=pod.metadata.deletion_timestamp is not None,
        version=annotations.get(VERSION, ""),
        template=annotations.get(TEMPLATE, ""),
        first=first,
        forced=annotations.get(FORCE) == "true",
        trouble="crash" if trouble == "disk" and first else trouble,
        restarts=container.restart_count if container is not None else 0,
        words=words,
        unready_since=None if is_ready else (ready[1] if ready else pod.metadata.creation_timestamp),
    )


def _claim_seen(cluster: EtcdCluster, claim: PersistentVolumeClaim) -> ClaimSeen:
    return ClaimSeen(
        name=claim.name,
        ending=claim.metadata.deletion_timestamp is not None,
        lost=claim.status.phase == "Lost",
        small=grown(cluster, claim) is not None,
    )


def _condition(pod: Pod, type_: str) -> tuple[str, datetime | None, str] | None:
    for condition in pod.status.conditions or []:
        if condition.type == type_:
            return condition.status, condition.last_transition_time, condition.message or ""
    return None


def _trouble(pod: Pod, container: ContainerStatus | None) -> tuple[Trouble, str]:
    scheduled = _condition(pod, "PodScheduled")
    if scheduled is not None and scheduled[0] == "False":
        return "unschedulable", _short(scheduled[2])
    if container is None:
        return "", ""
    waiting = container.state.waiting if container.state else None
    if waiting is not None and waiting.reason in _NO_IMAGE:
        return "image", _short(f"{waiting.reason}: {waiting.message or ''}")
    return _last_end(container)


def _last_end(container: ContainerStatus) -> tuple[Trouble, str]:
    states = [state for state in (container.state, container.last_state) if state is not None and state.terminated]
    if not states or states[0].terminated is None:
        return "", ""
    end = states[0].terminated
    fatal = [line for line in (end.message or "").splitlines() if _FATAL.search(line)]
    if any(_DISK.search(line) for line in fatal):
        return "disk", _short(_said(fatal[-1]))
    return "crash", _short(_said(fatal[-1])) if fatal else f"it ended with code {end.exit_code}"


def _said(line: str) -> str:
    """The words of a line of etcd's log."""
    parts = re.findall(r'"(?:msg|error)":"((?:[^"\\]|\\.)*)"', line)
    return ": ".join(parts) or line


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}..."
