"""`EtcdClient`, with etcd's services for members and authentication."""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, aclosing
from typing import Literal

import msgspec

from navarch._base.clock import Clock, SystemClock
from navarch._base.closing import Closing
from navarch.etcd.gateway import Gateway
from navarch.etcd.kv import Kv
from navarch.etcd.leases import Leases
from navarch.etcd.maintenance import Maintenance
from navarch.etcd.messages import EmptyResponse, Member, WatchResponse
from navarch.etcd.methods import Method
from navarch.etcd.options import EtcdOptions, EtcdSession
from navarch.etcd.watch import WatchRequest, watch_keys


def _method(path: str) -> Method[EmptyResponse]:
    return Method(f"/v3/auth/{path}", EmptyResponse, repeatable=False)


_ENABLE, _DISABLE = _method("enable"), _method("disable")
_ADD_USER, _ADD_ROLE = _method("user/add"), _method("role/add")
_GIVE_ROLE, _ALLOW = _method("user/grant"), _method("role/grant")
_SET_PASSWORD = _method("user/changepw")


class EtcdAuth:
    """etcd's authentication: users, roles and permissions. `enable` needs the user and the role `root`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def enable(self) -> None:
        """Enables authentication: every request then needs a token."""
        await self._gateway.call(_ENABLE, {})

    async def disable(self) -> None:
        """Disables authentication."""
        await self._gateway.call(_DISABLE, {})

    async def add_user(self, name: str, password: str) -> None:
        """Adds a user without permissions."""
        await self._gateway.call(_ADD_USER, {"name": name, "password": password})

    async def set_password(self, name: str, password: str) -> None:
        """Sets a user's password."""
        await self._gateway.call(_SET_PASSWORD, {"name": name, "password": password})

    async def log_in(self) -> bool:
        """Logs in; returns False if authentication is disabled. Raises `EtcdAccessError` for a wrong password.

        Optional: other calls log in by themselves.
        """
        return await self._gateway.log_in()

    async def add_role(self, name: str) -> None:
        """Adds a role without permissions."""
        await self._gateway.call(_ADD_ROLE, {"name": name})

    async def give_role(self, user: str, role: str) -> None:
        """Grants a role to a user."""
        await self._gateway.call(_GIVE_ROLE, {"user": user, "role": role})

    async def allow(
        self, role: str, key: bytes, *, range_end: bytes = b"", how: Literal["READ", "WRITE", "READWRITE"] = "READWRITE"
    ) -> None:
        """Grants a role access to one key, or to the keys from `key` up to `range_end`."""
        permission = {"permType": how, "key": key, "range_end": range_end}
        await self._gateway.call(_ALLOW, {"name": role, "perm": permission})


class _MemberList(msgspec.Struct):
    members: list[Member] = []


class _AddedMember(msgspec.Struct):
    member: Member
    members: list[Member] = []


_LIST = Method("/v3/cluster/member/list", _MemberList, repeatable=True)
_ADD = Method("/v3/cluster/member/add", _AddedMember, repeatable=False)
_REMOVE = Method("/v3/cluster/member/remove", _MemberList, repeatable=False)
_UPDATE = Method("/v3/cluster/member/update", _MemberList, repeatable=False)
_PROMOTE = Method("/v3/cluster/member/promote", _MemberList, repeatable=False)


class EtcdMembership:
    """The members of a cluster. Raises `EtcdError`; an invalid change raises `EtcdRefusedError`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def members(self, *, linearizable: bool = True) -> list[Member]:
        """Returns all members; without `linearizable`, the endpoint's own list, which needs no quorum.

        etcd before 3.5 always returns the endpoint's own list; do a linearizable read there first.
        """
        return (await self._gateway.call(_LIST, {"linearizable": True} if linearizable else {})).members

    async def add(self, peer_urls: Sequence[str], *, learner: bool = False) -> Member:
        """Adds a member, which has to be started then; a learner does not vote until it is promoted."""
        request = {"peerURLs": peer_urls, "isLearner": True} if learner else {"peerURLs": peer_urls}
        return (await self._gateway.call(_ADD, request)).member

    async def promote(self, member: int) -> list[Member]:
        """Promotes a learner, and returns all members; etcd refuses while the learner is not in sync."""
        return (await self._gateway.call(_PROMOTE, {"ID": member})).members

    async def remove(self, member: int) -> list[Member]:
        """Removes a member, and returns all members. Raises `EtcdNotFoundError`."""
        return (await self._gateway.call(_REMOVE, {"ID": member})).members

    async def update(self, member: int, peer_urls: Sequence[str]) -> list[Member]:
        """Changes the peer URLs of a member, and returns all members. Raises `EtcdNotFoundError`."""
        return (await self._gateway.call(_UPDATE, {"ID": member, "peerURLs": peer_urls})).members


class EtcdClient(Closing):
    """A client of one etcd cluster, for one event loop: `async with EtcdClient(options) as etcd`.

    Opens nothing before the first call; after the block it is closed for good.
    """

    def __init__(
        self,
        options: EtcdOptions,
        *,
        session: EtcdSession | None = None,
        clock: Clock | None = None,
        rng: random.Random | None = None,
    ) -> None:
        # Jitter, so that clients that fail together do not retry together.
        rng = rng or random.Random()  # noqa: S311
        self._gateway = Gateway(options, session or EtcdSession(), clock or SystemClock(), rng)
        self.kv = Kv(self._gateway)
        self.leases = Leases(self._gateway)
        self.cluster = EtcdMembership(self._gateway)
        self.maintenance = Maintenance(self._gateway)
        self.access = EtcdAuth(self._gateway)

    def watch(self, request: WatchRequest) -> AbstractAsyncContextManager[AsyncIterator[WatchResponse]]:
        """Watches keys from the request's revision on; see `watch_keys`.

        async with etcd.watch(WatchRequest(key=b"/a/", range_end=prefix_end(b"/a/"))) as answers:
            async for answer in answers: ...
        """
        return aclosing(watch_keys(self._gateway, request))

    async def close(self) -> None:
        """Closes every connection; may be called twice."""
        await self._gateway.close()
