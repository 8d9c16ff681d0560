"""Looking after members: these calls are about one of them, and say which endpoint is meant."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import msgspec

from navarch.errors import EtcdUncertainError
from navarch.etcd.gateway import Gateway, Method, Streaming
from navarch.etcd.messages import AlarmMember, Header, Status

__all__ = ["HashKv", "Maintenance", "Versions"]

_LONG = 600.0  # a member with gigabytes needs minutes
_DIGEST_SIZE = hashlib.sha256().digest_size


class HashKv(msgspec.Struct, frozen=True, kw_only=True):
    """A checksum of what keys had from `compact_revision` on up to the revision asked for."""

    header: Header = Header()
    hash: int = 0
    compact_revision: int = 0


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The member's own version, and that of the whole cluster: what its oldest member had when they last agreed on it."""

    etcdserver: str = ""
    etcdcluster: str = ""


class _Alarms(msgspec.Struct):
    alarms: list[AlarmMember] = []


class _Nothing(msgspec.Struct):
    pass


class _Piece(msgspec.Struct):
    remaining_bytes: int = 0
    blob: bytes = b""


_STATUS = Method("/v3/maintenance/status", Status, repeatable=True)
_VERSIONS = Method("/version", Versions, repeatable=True, verb="GET")
_DEFRAGMENT = Method("/v3/maintenance/defragment", _Nothing, repeatable=False, seconds=_LONG)
_ALARM = Method("/v3/maintenance/alarm", _Alarms, repeatable=True)
_HASH_KV = Method("/v3/maintenance/hash", HashKv, repeatable=True, seconds=_LONG)
_MOVE_LEADER = Method("/v3/maintenance/transfer-leadership", _Nothing, repeatable=False)
_SNAPSHOT = Streaming("/v3/maintenance/snapshot", _Piece)


class Maintenance:
    """Status, space, alarms, snapshots, leadership. Raises an `EtcdError`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def status(self, endpoint: str) -> Status:
        """What the member at that endpoint says of itself."""
        return await self._gateway.call(_STATUS, {}, endpoint=endpoint)

    async def versions(self, endpoint: str) -> Versions:
        """What the member at that endpoint has, and what the cluster has agreed on, some seconds after its oldest member."""
        return await self._gateway.call(_VERSIONS, {}, endpoint=endpoint)

    async def defragment(self, endpoint: str) -> None:
        """Gives unused space back to the disk. The member serves nobody meanwhile."""
        await self._gateway.call(_DEFRAGMENT, {}, endpoint=endpoint)

    async def hash_kv(self, endpoint: str, *, revision: int = 0) -> HashKv:
        """A checksum of that member's keys and values; alike on all members for the same revision."""
        return await self._gateway.call(_HASH_KV, {"revision": revision}, endpoint=endpoint)

    async def move_leader(self, endpoint: str, *, to: int) -> None:
        """Makes another member lead; `endpoint` is that of the leader."""
        await self._gateway.call(_MOVE_LEADER, {"targetID": to}, endpoint=endpoint)

    async def alarms(self) -> list[AlarmMember]:
        """The alarms of all members."""
        return (await self._gateway.call(_ALARM, {"action": "GET"})).alarms

    async def disarm(self, alarm: AlarmMember) -> list[AlarmMember]:
        """Takes an alarm back, once its cause is gone; what was taken back."""
        request: dict[str, object] = {"action": "DEACTIVATE", "memberID": alarm.member_id, "alarm": alarm.alarm}
        return (await self._gateway.call(_ALARM, request)).alarms

    async def snapshot(self, endpoint: str) -> AsyncIterator[bytes]:
        """The member's whole database, piece by piece, as `etcdutl snapshot restore` takes it.

        Its last 32 bytes are the checksum of all before. Raises `EtcdUncertainError` if it is not complete.
        """
        check = _Check()
        async with self._gateway.stream(_SNAPSHOT, {}, endpoint=endpoint) as pieces:
            async for piece in pieces:
                check.add(piece.blob)
                yield piece.blob
        if not check.holds():
            raise EtcdUncertainError(f"{endpoint}: the snapshot broke off, or its checksum is wrong; take it again")


class _Check:
    """Whether the last 32 bytes are the checksum of all before."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._last = b""

    def add(self, piece: bytes) -> None:
        together = self._last + piece
        self._last = together[-_DIGEST_SIZE:]
        self._hash.update(together[:-_DIGEST_SIZE])

    def holds(self) -> bool:
        return self._hash.digest() == self._last
