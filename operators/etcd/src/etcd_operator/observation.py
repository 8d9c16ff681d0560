"""What is: pods, claims, members and what each of them says, as one value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal

from etcd_operator.backup_keeper import BackupState

PodTrouble = Literal["", "disk", "image", "crash", "unschedulable"]
"""What keeps a pod from running: its data is lost or corrupt, its image cannot be had, it ends again and again, or there
is no node for it."""
Alarm = Literal["NOSPACE", "CORRUPT"]
AuthState = Literal["", "off", "on", "refused"]
"""Whether etcd asks who one is, where that is asked for: not yet, yes, or yes and it does not know the operator."""
NodeLoss = Literal["", "gone", "unreachable", "stranded"]
"""What became of a pod's node: it is no node any more, it cannot be reached, or it has the pod's volume and is not there."""


def quorum(voters: int) -> int:
    """How many of so many must agree."""
    return voters // 2 + 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedPod:
    """A pod of the cluster. `first` if its etcd would start as it did the first time; `unready_since` unless it is ready."""

    name: str
    ip: str = ""
    running: bool = False
    ready: bool = False
    ending: bool = False
    version: str = ""
    template: str = ""
    first: bool = False
    peers: frozenset[str] = frozenset()
    """Of whom its etcd is told when it joins, each as `name=url`."""
    forced: bool = False
    trouble: PodTrouble = ""
    message: str = ""
    restarts: int = 0
    unready_since: datetime | None = None
    lost: NodeLoss = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedClaim:
    """A claim of the cluster. `lost` if the volume behind it is gone, `chosen` if its member is to go on alone."""

    name: str
    ending: bool = False
    lost: bool = False
    small: bool = False
    chosen: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberReport:
    """What a member says of itself. One without a leader cannot serve."""

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
    """A hash of all that a member has, from one revision on up to another. Of the same past, equal data has equal hashes."""

    hash: int
    compacted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ObservedMember:
    """A member as the others know it; one that has not started yet is only room for one."""

    id: int
    name: str
    learner: bool = False
    started: bool = True
    peer_url: str = ""
    """How the others reach it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """Everything that the next step is decided by. All maps are by the name of the member, its pod and its claim.

    `agreed` if a quorum has confirmed the members just now; otherwise they are what one of them remembers, or none.
    """

    now: datetime
    pods: Mapping[str, ObservedPod] = field(default_factory=dict)
    claims: Mapping[str, ObservedClaim] = field(default_factory=dict)
    others: frozenset[str] = frozenset()
    """Pods and claims that have this cluster's labels, and are not its own."""
    reports: Mapping[str, MemberReport] = field(default_factory=dict)
    members: tuple[ObservedMember, ...] = ()
    agreed: bool = False
    alarms: tuple[tuple[int, Alarm], ...] = ()
    auth: AuthState = ""
    faults: tuple[str, ...] = ()
    """What is wrong with Secrets, in words."""
    kept: BackupState = field(default_factory=BackupState)
    agreed_version: str = ""
    """What members take for the version of all of them; looked at while another one is asked for."""
    compared: bool = False
    fingerprints: Mapping[str, KeyspaceHash] = field(default_factory=dict)
    """Those of voters, at one revision; looked at now and then."""

    @property
    def voters(self) -> tuple[ObservedMember, ...]:
        """Those who decide."""
        return tuple(member for member in self.members if not member.learner)

    @property
    def names(self) -> frozenset[str]:
        """The names of all members."""
        return frozenset(member.name for member in self.members)

    def is_healthy(self, member: ObservedMember) -> bool:
        """Whether it answers, as the member that it should be, and knows who leads."""
        report = self.reports.get(member.name)
        return report is not None and report.member == member.id and report.leader != 0

    def stays(self, member: ObservedMember) -> bool:
        """Whether it can be counted on: it is healthy, and its pod is not about to go."""
        pod = self.pods.get(member.name)
        return self.is_healthy(member) and not (pod is not None and pod.ending)

    @property
    def healthy_voters(self) -> tuple[ObservedMember, ...]:
        """Voters that can be counted on."""
        return tuple(member for member in self.voters if self.stays(member))

    @property
    def accused(self) -> frozenset[int]:
        """Members of which etcd says that they hold other data than the rest; 0 if it cannot tell who."""
        return frozenset(number for number, alarm in self.alarms if alarm == "CORRUPT")

    @property
    def is_clear_who_is_corrupt(self) -> bool:
        """Whether most voters are not accused. etcd compares with what the leader has, which may be what is wrong."""
        believed = [member for member in self.healthy_voters if member.id not in self.accused]
        return 0 not in self.accused and len(believed) >= quorum(len(self.voters))

    def silence(self, pod: ObservedPod) -> float:
        """For how many seconds it has not been ready."""
        return (self.now - pod.unready_since).total_seconds() if pod.unready_since else 0.0

    def is_misled(self, pod: ObservedPod) -> bool:
        """Whether it is told of other members than there are: etcd joins none but those that it knows all of."""
        members = {f"{member.name}={member.peer_url}" for member in self.members}
        return pod.first and self.agreed and bool(pod.peers) and pod.peers != members

    def loses_data_with_its_pod(self, name: str) -> bool:
        """Whether a claim is there and only as long as the pod is."""
        claim = self.claims.get(name)
        return claim is not None and claim.ending

    @property
    def leader(self) -> ObservedMember | None:
        """The member that most say leads."""
        said = [report.leader for report in self.reports.values() if report.leader]
        return next((member for member in self.members if said and member.id == max(said, key=said.count)), None)

    def is_whole_without(self, member: ObservedMember) -> bool:
        """Whether those that stay can be counted on to decide, once it is removed, and to remove it."""
        others = [each for each in self.healthy_voters if each.id != member.id]
        if member.learner:
            return len(others) >= quorum(len(self.voters))
        return len(others) >= max(quorum(len(self.voters) - 1), 1) and self.agreed
