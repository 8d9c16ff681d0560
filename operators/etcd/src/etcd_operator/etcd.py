"""`Etcd`: the calls that the operator makes to a cluster's etcd. Tests pass another `Connect`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from typing import Protocol

from etcd_operator.kinds import EtcdCluster
from etcd_operator.observation import Alarm, AuthState, KeyspaceHash, MemberReport, ObservedMember
from etcd_operator.tls import EtcdCredentials


class Etcd(Protocol):
    """The etcd of one cluster. Writes raise an `EtcdError`; reads return an empty result if no member answers."""

    async def reports(self) -> Mapping[str, MemberReport]:
        """Returns the status of each member that answers."""
        ...

    async def members(self, *, agreed: bool) -> tuple[ObservedMember, ...] | None:
        """Returns the member list, confirmed by a quorum or as one member knows it; None if no member answers."""
        ...

    async def auth(self) -> AuthState:
        """Returns the state of authentication; empty if spec.auth is not set or no member answers.

        Call it after `members`, which notices a refusal.
        """
        ...

    async def alarms(self) -> tuple[tuple[int, Alarm], ...]:
        """Returns the alarms of all members."""
        ...

    async def agreed_version(self) -> str:
        """Returns the cluster version; empty if no member answers."""
        ...

    async def fingerprints(self, names: Sequence[str], revision: int) -> Mapping[str, KeyspaceHash]:
        """Returns the key-space hash at that revision, of the members that answer."""
        ...

    async def add(self, peer_url: str, *, learner: bool) -> None:
        """Adds a member to the member list."""
        ...

    async def promote(self, member: int) -> None:
        """Promotes a learner; etcd refuses while it is not in sync."""
        ...

    async def remove(self, member: int) -> None:
        """Removes a member from the member list."""
        ...

    async def update(self, member: int, peer_url: str) -> None:
        """Changes the peer URL of a member."""
        ...

    async def move_leader(self, leader: str, to: int) -> None:
        """Transfers leadership to another member."""
        ...

    async def compact(self, revision: int) -> None:
        """Compacts the history before that revision."""
        ...

    async def defragment(self, name: str) -> None:
        """Defragments the database of a member."""
        ...

    async def disarm(self, member: int, alarm: Alarm) -> None:
        """Disarms an alarm."""
        ...

    async def ask_who(self) -> None:
        """Creates the user root with the operator's password, and enables authentication."""
        ...


Connect = Callable[[EtcdCluster, Mapping[str, str], EtcdCredentials], AbstractAsyncContextManager[Etcd]]
"""Opens the etcd of a cluster from the client URLs of its pods, which may be empty."""
