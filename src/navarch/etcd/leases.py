"""Leases: keys that go when nobody keeps them."""

from __future__ import annotations

import msgspec

from navarch.errors import EtcdNotFoundError, EtcdUnavailableError
from navarch.etcd.gateway import Gateway, Method, Streaming

__all__ = ["Lease", "LeaseTime", "Leases"]


class Lease(msgspec.Struct, frozen=True, kw_only=True):
    """A lease and the seconds that it lasts unless it is kept."""

    id: int = msgspec.field(default=0, name="ID")
    ttl: int = msgspec.field(default=0, name="TTL")


class LeaseTime(msgspec.Struct, frozen=True, kw_only=True):
    """What is left of a lease: `ttl` seconds of `granted`; the keys that hang on it, if they were asked for."""

    id: int = msgspec.field(default=0, name="ID")
    ttl: int = msgspec.field(default=0, name="TTL")
    granted: int = msgspec.field(default=0, name="grantedTTL")
    keys: list[bytes] = []


class _LeaseId(msgspec.Struct):
    id: int = msgspec.field(default=0, name="ID")


class _List(msgspec.Struct):
    leases: list[_LeaseId] = []


class _Nothing(msgspec.Struct):
    pass


_GRANT = Method("/v3/lease/grant", Lease, repeatable=False)
_REVOKE = Method("/v3/lease/revoke", _Nothing, repeatable=True)
_TIME = Method("/v3/lease/timetolive", LeaseTime, repeatable=True)
_LIST = Method("/v3/lease/leases", _List, repeatable=True)
_KEEP = Streaming("/v3/lease/keepalive", Lease)


class Leases:
    """Granting, keeping and giving back. Raises an `EtcdError`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def grant(self, seconds: int, *, id: int = 0) -> Lease:  # noqa: A002 - etcd's name for it
        """A new lease; etcd chooses the id unless one is given, and may grant more time than was asked for."""
        return await self._gateway.call(_GRANT, {"TTL": seconds, "ID": id})

    async def revoke(self, lease: int) -> None:
        """Ends the lease and deletes its keys. Raises `EtcdNotFoundError`."""
        await self._gateway.call(_REVOKE, {"ID": lease})

    async def time_left(self, lease: int, *, keys: bool = False) -> LeaseTime:
        """What is left of it. Raises `EtcdNotFoundError` if it is over."""
        answer = await self._gateway.call(_TIME, {"ID": lease, "keys": keys})
        if answer.ttl < 0:
            raise _over(lease)
        return answer

    async def ids(self) -> list[int]:
        """All leases that are not over."""
        return [lease.id for lease in (await self._gateway.call(_LIST, {})).leases]

    async def keep_once(self, lease: int) -> Lease:
        """Gives the lease its whole time again. Raises `EtcdNotFoundError` if it is over."""
        async with self._gateway.stream(_KEEP, {"ID": lease}) as answers:
            async for answer in answers:
                if answer.ttl <= 0:
                    raise _over(lease)
                return answer
        raise EtcdUnavailableError("/v3/lease/keepalive: the answer was empty")

    async def keep(self, lease: int) -> None:
        """Keeps the lease until cancelled, three times as often as needed.

        Raises `EtcdNotFoundError` when it is over, `EtcdUnavailableError` when nobody answers: it may soon be over then.
        """
        while True:
            kept = await self.keep_once(lease)
            await self._gateway.sleep(kept.ttl / 3)


def _over(lease: int) -> EtcdNotFoundError:
    return EtcdNotFoundError(f"the lease {lease} is over, or has never been")
