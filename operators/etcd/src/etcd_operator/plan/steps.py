"""Steps: each is one change of the world that leaves a cluster which can be looked at again, and gone on from."""

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
    """One step, or none, and the reason in words. Looked at again after so many seconds, or when something changes.

    `stuck` if nothing will change unless somebody does something about it: the words say what.
    """

    reason: Reason
    message: str
    step: Step | None = None
    after: float = 0.0
    stuck: bool = False


def wait(reason: Reason, message: str, *, after: float = _SOON) -> ClusterPlan:
    """Nothing can be done before something else has happened."""
    return ClusterPlan(reason, message, after=after)


def stuck(reason: Reason, message: str) -> ClusterPlan:
    """Somebody has to do something."""
    return ClusterPlan(reason, message, after=_SELDOM, stuck=True)


def done(reason: Reason, message: str) -> ClusterPlan:
    """Nothing is left to do."""
    return ClusterPlan(reason, message, after=_SELDOM)


@dataclass(frozen=True, slots=True)
class Remember:
    """Writes down that the cluster has formed, and whether with TLS."""

    cluster: int
    secured: bool = False


@dataclass(frozen=True, slots=True)
class StartMember:
    """Makes a member's claim, if it has one, and its pod."""

    name: str
    start: MemberStart
    version: str


@dataclass(frozen=True, slots=True)
class Settle:
    """Lets a member that has started once never again start as if it had not."""

    name: str


@dataclass(frozen=True, slots=True)
class AddMember:
    """Makes room for a member in etcd."""

    name: str
    learner: bool


@dataclass(frozen=True, slots=True)
class Promote:
    """Lets a learner vote."""

    member: ObservedMember


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Takes a member out of etcd; its pod and its claim go afterwards."""

    member: ObservedMember


@dataclass(frozen=True, slots=True)
class MoveLeader:
    """Lets another member lead."""

    leader: ObservedMember
    to: ObservedMember


@dataclass(frozen=True, slots=True)
class DeletePod:
    """Stops a member's etcd."""

    name: str


@dataclass(frozen=True, slots=True)
class DeleteClaim:
    """Lets the data go of somebody who is no member any more."""

    name: str


@dataclass(frozen=True, slots=True)
class ChooseSurvivor:
    """Writes at a member's claim that its data is what the cluster goes on from; or that it is not any more."""

    name: str
    chosen: bool = True


@dataclass(frozen=True, slots=True)
class GrowClaim:
    """Asks for a larger volume."""

    name: str


@dataclass(frozen=True, slots=True)
class Compact:
    """Lets etcd forget what keys had before that revision."""

    revision: int


@dataclass(frozen=True, slots=True)
class Defragment:
    """Gives the space that a member does not use back to the disk; what keys had before a revision is forgotten first."""

    name: str
    forget: int = 0


@dataclass(frozen=True, slots=True)
class Disarm:
    """Takes an alarm back whose cause is gone."""

    member: int
    alarm: Alarm


@dataclass(frozen=True, slots=True)
class GiveUpVersion:
    """Writes down that a version does not work here, so that the one before is gone back to."""

    version: str


@dataclass(frozen=True, slots=True)
class BackUp:
    """Asks for a snapshot of what there is before an upgrade."""


@dataclass(frozen=True, slots=True)
class Restore:
    """Asks for a snapshot to take the place of what the members have; `safely` only after that was copied."""

    origin: SnapshotOrigin
    safely: bool = False


@dataclass(frozen=True, slots=True)
class SecurePeer:
    """Tells the other members to reach one with TLS."""

    member: ObservedMember


@dataclass(frozen=True, slots=True)
class Secured:
    """Writes down that all members reach each other with TLS, so that nothing is started in plain text again."""


@dataclass(frozen=True, slots=True)
class AskWho:
    """Gives etcd its user root, and lets nobody in without a password."""


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
