"""What the operator asks of a cluster's etcd. Another way to reach it is another `Connect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Alarm, AuthState, KeyspaceHash, MemberReport, ObservedMember
from etcd_operator.tls import EtcdCredentials


class Etcd(Protocol):
    """One cluster's etcd, by the URLs of its pods. All but the questions raise an `EtcdError`."""

    async def reports(self) -> Mapping[str, MemberReport]:
        """What each member says that says anything."""
        ...

    async def members(self, *, agreed: bool) -> tuple[ObservedMember, ...] | None:
        """All members, as a quorum has agreed just now or as one of them knows; None if nobody can say."""
        ...

    async def auth(self) -> AuthState:
        """Whether etcd asks who one is, and knows the operator; empty if that is not to be, or nobody can say.

        Asked after members were: whom they refuse is a stranger.
        """
        ...

    async def alarms(self) -> tuple[tuple[int, Alarm], ...]:
        """The alarms of all members; none if nobody can say."""
        ...

    async def agreed_version(self) -> str:
        """The version of the whole cluster; empty if nobody can say."""
        ...

    async def fingerprints(self, names: Sequence[str], revision: int) -> Mapping[str, KeyspaceHash]:
        """What members have up to that revision; of those that can say."""
        ...

    async def add(self, peer_url: str, *, learner: bool) -> None:
        """Makes room for a member."""
        ...

    async def promote(self, member: int) -> None:
        """Lets a learner vote; refused while it has not caught up."""
        ...

    async def remove(self, member: int) -> None:
        """Takes a member out."""
        ...

    async def update(self, member: int, peer_url: str) -> None:
        """Tells the others another way to a member."""
        ...

    async def move_leader(self, leader: str, to: int) -> None:
        """Lets another member lead."""
        ...

    async def compact(self, revision: int) -> None:
        """Forgets what was before."""
        ...

    async def defragment(self, name: str) -> None:
        """Gives space back."""
        ...

    async def disarm(self, member: int, alarm: Alarm) -> None:
        """Takes an alarm back."""
        ...

    async def ask_who(self) -> None:
        """From now on nobody may do anything without a password; root's is the one that the operator has."""
        ...


Connect = Callable[[EtcdCluster, Mapping[str, str], EtcdCredentials], AbstractAsyncContextManager[Etcd]]
"""Reaches the etcd of a cluster by the URLs of its pods, which may be none."""
