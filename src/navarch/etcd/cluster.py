"""Who belongs to the cluster."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from navarch.etcd.gateway import Gateway, Method
from navarch.etcd.messages import Member

__all__ = ["Cluster"]


class _Members(msgspec.Struct):
    members: list[Member] = []


class _Added(msgspec.Struct):
    member: Member
    members: list[Member] = []


_LIST = Method("/v3/cluster/member/list", _Members, repeatable=True)
_ADD = Method("/v3/cluster/member/add", _Added, repeatable=False)
_REMOVE = Method("/v3/cluster/member/remove", _Members, repeatable=False)
_UPDATE = Method("/v3/cluster/member/update", _Members, repeatable=False)
_PROMOTE = Method("/v3/cluster/member/promote", _Members, repeatable=False)


class Cluster:
    """The members. Raises an `EtcdError`; a change that makes no sense raises `EtcdRefusedError`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def members(self, *, linearizable: bool = True) -> list[Member]:
        """All members; if not linearizable, as the endpoint knows them, also when there is no quorum.

        etcd before 3.5 always answers as it knows them: what a quorum knows is known after a linearizable read.
        """
        return (await self._gateway.call(_LIST, {"linearizable": True} if linearizable else {})).members

    async def add(self, peer_urls: Sequence[str], *, learner: bool = False) -> Member:
        """Makes room for a member, which is to be started then; a learner does not vote until it is promoted."""
        request = {"peerURLs": peer_urls, "isLearner": True} if learner else {"peerURLs": peer_urls}
        return (await self._gateway.call(_ADD, request)).member

    async def promote(self, member: int) -> list[Member]:
        """Lets a learner vote; refused while it has not caught up. All members afterwards."""
        return (await self._gateway.call(_PROMOTE, {"ID": member})).members

    async def remove(self, member: int) -> list[Member]:
        """Takes a member out. Raises `EtcdNotFoundError`. All members afterwards."""
        return (await self._gateway.call(_REMOVE, {"ID": member})).members

    async def update(self, member: int, peer_urls: Sequence[str]) -> list[Member]:
        """Tells the others where a member is now. Raises `EtcdNotFoundError`. All members afterwards."""
        return (await self._gateway.call(_UPDATE, {"ID": member, "peerURLs": peer_urls})).members
