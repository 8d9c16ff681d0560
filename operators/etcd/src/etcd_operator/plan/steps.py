"""`ClusterPlan` and its steps. Each step is one change, after which the cluster can be observed and planned again."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

from etcd_operator.backup_keeper import SnapshotOrigin
from etcd_operator.manifests import MemberStart
from etcd_operator.observation import Alarm, ObservedMember

Reason = Literal[
    "AccessRefused",
    "Alarmed",
    "Asleep",
    "Diverged",
    "Forming",
    "Growing",
    "Healing",
    "IdentityMismatch",
    "Joining",
    "Paused",
    "QuorumLost",
    "Ready",
    "Recovering",
    "RollingOut",
    "RolloutFailed",
    "RolloutRefused",
    "ScalingDown",
    "ScalingUp",
    "SecretsWrong",
    "Securing",
    "TidyingUp",
    "Unreachable",
    "Unsupported",
    "WakingUp",
]

_SOON: Final = 0.3
_SELDOM: Final = 30.0


@dataclass(frozen=True, slots=True)
class ClusterPlan:
    """At most one step, with its reason and message. The next reconcile follows after `after` seconds or on a change.

    `stuck` means that a person has to act; the message tells how.
    """

    reason: Reason
    message: str
    step: Step | None = None
    after: float = 0.0
    stuck: bool = False


def wait(reason: Reason, message: str, *, after: float = _SOON) -> ClusterPlan:
    """Returns a plan without a step that waits for a change."""
    return ClusterPlan(reason, message, after=after)


def stuck(reason: Reason, message: str) -> ClusterPlan:
    """Returns a plan without a step that waits for a person."""
    return ClusterPlan(reason, message, after=_SELDOM, stuck=True)


def done(reason: Reason, message: str) -> ClusterPlan:
    """Returns a plan without a step: the cluster matches its spec."""
    return ClusterPlan(reason, message, after=_SELDOM)


@dataclass(frozen=True, slots=True)
class Remember:
    """Records in the status that the cluster has formed, and whether with TLS."""

    cluster: int
    secured: bool = False


@dataclass(frozen=True, slots=True)
class StartMember:
    """Creates a member's claim, if it needs one, and its pod."""

    name: str
    start: MemberStart
    version: str


@dataclass(frozen=True, slots=True)
class Settle:
    """Removes the flags of a first start from a pod whose member has started."""

    name: str


@dataclass(frozen=True, slots=True)
class AddMember:
    """Adds a member to etcd's member list."""

    name: str
    learner: bool


@dataclass(frozen=True, slots=True)
class Promote:
    """Promotes a learner to a voter."""

    member: ObservedMember


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Removes a member from etcd's member list; later steps delete its pod and its claim."""

    member: ObservedMember


@dataclass(frozen=True, slots=True)
class MoveLeader:
    """Transfers leadership to another member."""

    leader: ObservedMember
    to: ObservedMember


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Deletes a member's pod."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Deletes the claim of a removed member."""

    name: str


@dataclass(frozen=True, slots=True)
class ChooseSurvivor:
    """Annotates a member's claim as the survivor of a quorum loss, or removes that annotation."""

    name: str
    chosen: bool = True


@dataclass(frozen=True, slots=True)
class GrowClaim:
    """Raises the storage request of a claim."""

    name: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Compacts etcd's history before that revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class Defragment:
    """Defragments a member's database, after a compaction at revision `forget` if that is not 0."""

    name: str
    forget: int = 0


@dataclass(frozen=True, slots=True)
class Disarm:
    """Disarms an alarm whose cause is gone."""

    member: int
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class GiveUpVersion:
    """Records in the status that a version failed, so that the members return to the version before."""

    version: str


@dataclass(frozen=True, slots=True)
class BackUp:
    """Requests the snapshot before an upgrade."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Requests a restore of the cluster; `safely` requires a safety copy of its data first."""

    origin: SnapshotOrigin
    safely: bool = False


@dataclass(frozen=True, slots=True)
class SecurePeer:
    """Changes a member's peer URL to https."""

    member: ObservedMember


@dataclass(frozen=True, slots=True)
class Secured:
    """Records in the status that all peer URLs use TLS, so that no member starts in plain text again."""


@dataclass(frozen=True, slots=True)
class AskWho:
    """Creates etcd's user root, and enables authentication."""


Step = (
    Remember
    | StartMember
    | Settle
    | AddMember
    | Promote
    | RemoveMember
    | MoveLeader
    | DeletePod
    | DeleteClaim
    | ChooseSurvivor
    | GrowClaim
    | Compact
    | Defragment
    | Disarm
    | GiveUpVersion
    | SecurePeer
    | Secured
    | AskWho
    | BackUp
    | Restore
)
