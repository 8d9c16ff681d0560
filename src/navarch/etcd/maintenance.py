"""Maintenance of members. Most calls concern one member, and take its endpoint."""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator

import msgspec

from navarch.errors import EtcdUncertainError
from navarch.etcd.gateway import Gateway
from navarch.etcd.messages import AlarmMember, EmptyResponse, Header, MemberStatus
from navarch.etcd.methods import Method, Streaming

_LONG = 600.0  # a member with gigabytes needs minutes
_DIGEST_SIZE = hashlib.sha256().digest_size


class HashKv(msgspec.Struct, frozen=True, kw_only=True):
    """A hash of the keys from `compact_revision` up to the requested revision."""

    header: Header = Header()
    hash: int = 0
    compact_revision: int = 0


class Versions(msgspec.Struct, frozen=True, kw_only=True):
    """The member's version, and the cluster version: that of its oldest member at the last agreement."""

    etcdserver: str = ""
    etcdcluster: str = ""


class _Alarms(msgspec.Struct):
    alarms: list[AlarmMember] = []


class _SnapshotChunk(msgspec.Struct):
    remaining_bytes: int = 0
    blob: bytes = b""


_STATUS = Method("/v3/maintenance/status", MemberStatus, repeatable=True)
_VERSIONS = Method("/version", Versions, repeatable=True, verb="GET")
_DEFRAGMENT = Method("/v3/maintenance/defragment", EmptyResponse, repeatable=False, seconds=_LONG)
_ALARM = Method("/v3/maintenance/alarm", _Alarms, repeatable=True)
_HASH_KV = Method("/v3/maintenance/hash", HashKv, repeatable=True, seconds=_LONG)
_MOVE_LEADER = Method("/v3/maintenance/transfer-leadership", EmptyResponse, repeatable=False)
_SNAPSHOT = Streaming("/v3/maintenance/snapshot", _SnapshotChunk)


class Maintenance:
    """Status, space, alarms, snapshots and leadership. Raises `EtcdError`."""

    def __init__(self, gateway: Gateway) -> None:
        self._gateway = gateway

    async def status(self, endpoint: str) -> MemberStatus:
        """Returns the status of the member at that endpoint."""
        return await self._gateway.call(_STATUS, {}, endpoint=endpoint)

    async def versions(self, endpoint: str) -> Versions:
        """Returns the versions of the member and of the cluster; the latter follows an upgrade after some seconds."""
        return await self._gateway.call(_VERSIONS, {}, endpoint=endpoint)

    async def defragment(self, endpoint: str) -> None:
        """Defragments the database; the member does not serve meanwhile."""
        await self._gateway.call(_DEFRAGMENT, {}, endpoint=endpoint)

    async def hash_kv(self, endpoint: str, *, revision: int = 0) -> HashKv:
        """Returns the hash of that member's keys; equal on all members for the same revision."""
        return await self._gateway.call(_HASH_KV, {"revision": revision}, endpoint=endpoint)

    async def move_leader(self, endpoint: str, *, to: int) -> None:
        """Transfers leadership; `endpoint` is that of the leader."""
        await self._gateway.call(_MOVE_LEADER, {"targetID": to}, endpoint=endpoint)

    async def alarms(self) -> list[AlarmMember]:
        """Returns the alarms of all members."""
        return (await self._gateway.call(_ALARM, {"action": "GET"})).alarms

    async def disarm(self, alarm: AlarmMember) -> list[AlarmMember]:
        """Disarms an alarm; returns the disarmed ones."""
        request: dict[str, object] = {"action": "DEACTIVATE", "memberID": alarm.member_id, "alarm": alarm.alarm}
        return (await self._gateway.call(_ALARM, request)).alarms

    async def snapshot(self, endpoint: str) -> AsyncIterator[bytes]:
        """Yields the member's database in chunks, as `etcdutl snapshot restore` expects it.

        The last 32 bytes are the checksum of the rest. Raises `EtcdUncertainError` if the snapshot is incomplete.
        """
        check = _SnapshotChecksum()
        async with self._gateway.stream(_SNAPSHOT, {}, endpoint=endpoint) as pieces:
            async for piece in pieces:
                check.add(piece.blob)
                yield piece.blob
        if not check.holds():
            raise EtcdUncertainError(f"{endpoint}: the snapshot is incomplete or its checksum is wrong; take it again")


class _SnapshotChecksum:
    """Checks that the last 32 bytes of a stream are the checksum of the rest."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self._last = b""

    def add(self, piece: bytes) -> None:
        together = self._last + piece
        self._last = together[-_DIGEST_SIZE:]
        self._hash.update(together[:-_DIGEST_SIZE])

    def holds(self) -> bool:
        return self._hash.digest() == self._last
