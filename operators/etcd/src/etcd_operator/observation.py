"""`Observation`: the observed pods, claims and etcd members of one cluster, as one immutable value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from etcd_operator.backup_keeper import BackupState

PodTrouble = Literal["", "disk", "image", "crash", "unschedulable"]
"""Why a pod does not run: its data is lost or corrupt, its image cannot be pulled, it crashes, or it is unschedulable."""
Alarm = Literal["NOSPACE", "CORRUPT"]
AuthState = Literal["", "off", "on", "refused"]
"""etcd's authentication where spec.auth asks for it: disabled, enabled, or enabled and it refuses the operator."""
NodeLoss = Literal["", "gone", "unreachable", "stranded"]
"""How a pod's node was lost: deleted, unreachable, or no remaining node can mount the pod's volume."""


def quorum(voters: int) -> int:
    """Returns the majority of that many voters."""
    return voters // 2 + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """A pod of the cluster. `first` means that its etcd still has the flags of a first start; `unready_since` is None if ready."""

    name: str
    ip: str = ""
    running: bool = False
    ready: bool = False
    ending: bool = False
    version: str = ""
    template: str = ""
    first: bool = False
    peers: frozenset[str] = frozenset()
    """The initial cluster of its etcd, each peer as `name=url`."""
    forced: bool = False
    trouble: PodTrouble = ""
    message: str = ""
    restarts: int = 0
    unready_since: datetime | None = None
    lost: NodeLoss = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedClaim:
    """A claim of the cluster. `lost` means that its volume is gone, `chosen` that its member is the survivor of a quorum loss."""

    name: str
    ending: bool = False
    lost: bool = False
    small: bool = False
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    """The status that a member reports of itself. A member without a leader cannot serve."""

    member: int
    cluster: int
    version: str = ""
    leader: int = 0
    learner: bool = False
    revision: int = 0
    index: int = 0
    size: int = 0
    in_use: int = 0


@dataclass(frozen=True, slots=True)
class KeyspaceHash:
    """The hash of a member's key space since its compaction; comparable between members with the same compacted revision."""

    hash: int
    compacted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMember:
    """A member in etcd's member list; one that has not started yet is a reserved entry."""

    id: int
    name: str
    learner: bool = False
    started: bool = True
    peer_url: str = ""
    """The URL at which the other members reach it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The input of planning. All maps are keyed by member name, which is also the name of its pod and its claim.

    `agreed` means that a quorum confirmed the member list; otherwise one member remembers the list, or it is empty.
    """

    now: datetime
    pods: Mapping[str, ObservedPod] = field(default_factory=dict)
    claims: Mapping[str, ObservedClaim] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    """Pods and claims that carry this cluster's labels but that it does not own."""
    reports: Mapping[str, MemberReport] = field(default_factory=dict)
    members: tuple[ObservedMember, ...] = ()
    agreed: bool = False
    alarms: tuple[tuple[int, Alarm], ...] = ()
    auth: AuthState = ""
    faults: tuple[str, ...] = ()
    """Error messages about the cluster's Secrets."""
    kept: BackupState = field(default_factory=BackupState)
    agreed_version: str = ""
    """The cluster version that members agreed on; read only during an upgrade."""
    compared: bool = False
    fingerprints: Mapping[str, KeyspaceHash] = field(default_factory=dict)
    """The hashes of the voters at one revision; read at intervals."""

    @property
    def voters(self) -> tuple[ObservedMember, ...]:
        """The members that vote."""
        return tuple(member for member in self.members if not member.learner)

    @property
    def names(self) -> frozenset[str]:
        """The names of all members, learners included."""
        return frozenset(member.name for member in self.members)

    def is_healthy(self, member: ObservedMember) -> bool:
        """Reports whether the member answers with its own id and knows a leader."""
        report = self.reports.get(member.name)
        return report is not None and report.member == member.id and report.leader != 0

    def stays(self, member: ObservedMember) -> bool:
        """Reports whether the member is healthy and its pod is not terminating."""
        pod = self.pods.get(member.name)
        return self.is_healthy(member) and not (pod is not None and pod.ending)

    @property
    def healthy_voters(self) -> tuple[ObservedMember, ...]:
        """Healthy voters whose pods are not terminating."""
        return tuple(member for member in self.voters if self.stays(member))

    @property
    def accused(self) -> frozenset[int]:
        """The ids of members with a CORRUPT alarm; 0 if etcd cannot tell which member is corrupt."""
        return frozenset(number for number, alarm in self.alarms if alarm == "CORRUPT")

    @property
    def is_clear_who_is_corrupt(self) -> bool:
        """Reports whether a majority has no alarm: etcd compares with the leader, which may itself be corrupt."""
        believed = [member for member in self.healthy_voters if member.id not in self.accused]
        return 0 not in self.accused and len(believed) >= quorum(len(self.voters))

    def silence(self, pod: ObservedPod) -> float:
        """Returns for how many seconds the pod has not been ready."""
        return (self.now - pod.unready_since).total_seconds() if pod.unready_since else 0.0

    def is_misled(self, pod: ObservedPod) -> bool:
        """Reports whether the pod's initial cluster differs from the member list: etcd then refuses to join."""
        members = {f"{member.name}={member.peer_url}" for member in self.members}
        return pod.first and self.agreed and bool(pod.peers) and pod.peers != members

    def loses_data_with_its_pod(self, name: str) -> bool:
        """Reports whether the claim is terminating, so that it is deleted together with the pod."""
        claim = self.claims.get(name)
        return claim is not None and claim.ending

    @property
    def leader(self) -> ObservedMember | None:
        """The member that most members report as their leader."""
        said = [report.leader for report in self.reports.values() if report.leader]
        return next((member for member in self.members if said and member.id == max(said, key=said.count)), None)

    def is_whole_without(self, member: ObservedMember) -> bool:
        """Reports whether the healthy voters without this member can remove it, and have a quorum afterwards."""
        others = [each for each in self.healthy_voters if each.id != member.id]
        if member.learner:
            return len(others) >= quorum(len(self.voters))
        return len(others) >= max(quorum(len(self.voters) - 1), 1) and self.agreed
