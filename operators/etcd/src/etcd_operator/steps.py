"""Steps: each is one change of the world that leaves a cluster which can be looked at again, and gone on from."""

from __future__ import annotations

from dataclasses import dataclass

from etcd_operator.kept import Origin
from etcd_operator.manifests import Start
from etcd_operator.observation import Alarm, MemberSeen

__all__ = [
    "AddMember",
    "AskWho",
    "BackUp",
    "ChooseSurvivor",
    "Compact",
    "Defragment",
    "DeleteClaim",
    "DeletePod",
    "Disarm",
    "GiveUpVersion",
    "GrowClaim",
    "MoveLeader",
    "Promote",
    "Remember",
    "RemoveMember",
    "Restore",
    "SecurePeer",
    "Secured",
    "Settle",
    "StartMember",
    "Step",
]


@dataclass(frozen=True, slots=True)
class Remember:
    """Writes down that the cluster has formed, and whether with TLS."""

    cluster: int
    secured: bool = False


@dataclass(frozen=True, slots=True)
class StartMember:
    """Makes a member's claim, if it has one, and its pod."""

    name: str
    start: Start
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

    member: MemberSeen


@dataclass(frozen=True, slots=True)
class RemoveMember:
    """Takes a member out of etcd; its pod and its claim go afterwards."""

    member: MemberSeen


@dataclass(frozen=True, slots=True)
class MoveLeader:
    """Lets another member lead."""

    leader: MemberSeen
    to: MemberSeen


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

    origin: Origin
    safely: bool = False


@dataclass(frozen=True, slots=True)
class SecurePeer:
    """Tells the other members to reach one with TLS."""

    member: MemberSeen


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
