"""Leases: etcd deletes their keys when they expire."""

from __future__ import annotations

import msgspec

from navarch.errors import EtcdNotFoundError, EtcdUnavailableError
from navarch.etcd.gateway import Gateway
from navarch.etcd.messages import EmptyResponse
from navarch.etcd.methods import Method, Streaming


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease, and its time to live in seconds."""

    id: int = msgspec.field(default=0, name="ID")
    ttl: int = msgspec.field(default=0, name="TTL")


class LeaseTime(msgspec.Struct, frozen=True, kw_only=True):
    """The remaining time of a lease: `ttl` seconds of `granted`; and its keys, if requested."""

    id: int = msgspec.field(default=0, name="ID")
    ttl: int = msgspec.field(default=0, name="TTL")
    granted: int = msgspec.field(default=0, name="grantedTTL")
    keys: list[bytes] = []


class _LeaseId(msgspec.Struct):
    id: int = msgspec.field(default=0, name="ID")


class _LeaseList(msgspec.Struct):
    leases: list[_LeaseId] = []


_GRANT = Method("/v3/lease/grant", Lease, repeatable=False)
_REVOKE = Method("/v3/lease/revoke", EmptyResponse, repeatable=True)
_TIME = Method("/v3/lease/timetolive", LeaseTime, repeatable=True)
_LIST = Method("/v3/lease/leases", _LeaseList, repeatable=True)
_KEEP = Streaming("/v3/lease/keepalive", Lease)


class Leases:
    """Grants, keeps alive and revokes leases. Raises `EtcdError`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def grant(self, seconds: int, *, id: int = 0) -> Lease:  # noqa: A002 - etcd's name for it
        """Grants a lease; etcd chooses the id unless one is given, and may grant more time."""
        return await self._gateway.call(_GRANT, {"TTL": seconds, "ID": id})

    async def revoke(self, lease: int) -> None:
        """Revokes the lease and deletes its keys. Raises `EtcdNotFoundError`."""
        await self._gateway.call(_REVOKE, {"ID": lease})

    async def time_left(self, lease: int, *, keys: bool = False) -> LeaseTime:
        """Returns the remaining time. Raises `EtcdNotFoundError` if the lease has expired."""
        answer = await self._gateway.call(_TIME, {"ID": lease, "keys": keys})
        if answer.ttl < 0:
            raise _over(lease)
        return answer

    async def ids(self) -> list[int]:
        """Returns the ids of all leases."""
        return [lease.id for lease in (await self._gateway.call(_LIST, {})).leases]

    async def keep_once(self, lease: int) -> Lease:
        """Renews the lease once. Raises `EtcdNotFoundError` if it has expired."""
        async with self._gateway.stream(_KEEP, {"ID": lease}) as answers:
            async for answer in answers:
                if answer.ttl <= 0:
                    raise _over(lease)
                return answer
        raise EtcdUnavailableError("/v3/lease/keepalive: the response was empty")

    async def keep(self, lease: int) -> None:
        """Renews the lease three times per TTL, until cancelled.

        Raises `EtcdNotFoundError` when it has expired, `EtcdUnavailableError` when no endpoint answers: it may expire soon.
        """
        while True:
            kept = await self.keep_once(lease)
            await self._gateway.sleep(kept.ttl / 3)


def _over(lease: int) -> EtcdNotFoundError:
    return EtcdNotFoundError(f"lease {lease} has expired or never existed")
