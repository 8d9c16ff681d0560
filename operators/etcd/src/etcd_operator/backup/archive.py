"""`Archive`: the snapshots of a store. A snapshot counts once its manifest exists, which is written last."""

from __future__ import annotations

import asyncio
import dataclasses
import hashlib
import re
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Final

import msgspec

from etcd_operator.backup.bolt import MAX_REVISION
from etcd_operator.backup.snapshot_store import PARTIAL, DamagedSnapshotError, SnapshotStore, StoreError, store_errors
from etcd_operator.backup.snapshots import MAX_BYTES, Snapshot, Verification, check, require_size

_ENDING: Final = ".manifest.json"
_BEHIND: Final = re.compile(r"_v\d+_\d{8}T\d{6}\.\d{6}Z")
"""The suffix of snapshots of a series. Other names in the folder are safety copies, or another series with the same
prefix."""
_OTHERS: Final = 10
"""Retention spares the newest snapshot of so many clusters with one path. Each restore creates another etcd cluster, so
without a limit the path would fill up."""
_MANIFEST_BYTES: Final = 1 << 16


def series_name(name: str, revision: int, taken: datetime) -> str:
    """Returns the name of a snapshot of a series.

    >>> series_name("some/etcd.db", 1234, datetime(2026, 1, 1, 2))
    'some/etcd.db_v1234_20260101T020000.000000Z'
    """
    return f"{name}_v{revision}_{taken:%Y%m%dT%H%M%S.%fZ}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """The description of a stored snapshot."""

    object: Annotated[str, msgspec.Meta(max_length=2048)]
    sha256: Annotated[str, msgspec.Meta(max_length=64)]
    size: Annotated[int, msgspec.Meta(ge=0, le=MAX_REVISION)]
    revision: Annotated[int, msgspec.Meta(ge=0, le=MAX_REVISION)]
    version: Annotated[str, msgspec.Meta(pattern=r"^(v?[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}([-.+].{0,64})?)?$")]
    taken: Annotated[datetime, msgspec.Meta(tz=True)]
    verified: Verification
    cluster: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """The id of the etcd cluster that it was taken from; empty if unknown."""


class Archive:
    """The snapshots of one store. Raises `StoreError`, or `DamagedSnapshotError` for changed content."""

    def __init__(self, store: SnapshotStore, *, max_bytes: int = MAX_BYTES) -> None:
        self._store = store
        self._max_bytes = max_bytes

    async def put(self, snapshot: Snapshot, name: str, taken: datetime, verified: Verification) -> Manifest:
        """Stores a snapshot under a temporary name, reads it back, and only then renames it.

        An existing object of its name stays unchanged until then.
        """
        manifest = Manifest(
            object=name,
            sha256=snapshot.sha256,
            size=snapshot.size,
            revision=snapshot.revision,
            version=snapshot.version,
            taken=taken,
            verified=verified,
            cluster=snapshot.cluster,
        )
        try:
            await self._write(snapshot.path, manifest)
            await self._publish(manifest)
        finally:
            for each in (name, name + _ENDING):
                await self._forget(each + PARTIAL)
        return manifest

    async def _write(self, path: Path, manifest: Manifest) -> None:
        """Writes and reads back everything under temporary names, so that a full store changes nothing."""
        with store_errors("writing the snapshot"):
            await self._store.put(manifest.object + PARTIAL, path)
        await self._read_back(manifest.object + PARTIAL, manifest)
        with store_errors("writing the manifest"):
            await self._store.put(manifest.object + _ENDING + PARTIAL, msgspec.json.encode(manifest))

    async def _publish(self, manifest: Manifest) -> None:
        """Renames the snapshot and its manifest; deletes the old manifest first, as a wrong one prevents a restore."""
        await self._forget(manifest.object + _ENDING)
        with store_errors("giving the snapshot its name"):
            size = await self._store.rename(manifest.object + PARTIAL, manifest.object)
        if size != manifest.size:
            raise DamagedSnapshotError(
                f"the store has {size} bytes under the snapshot's name, expected {manifest.size}"
            )
        with store_errors("giving the manifest its name"):
            await self._store.rename(manifest.object + _ENDING + PARTIAL, manifest.object + _ENDING)

    async def _read_back(self, name: str, manifest: Manifest) -> None:
        digest, size = hashlib.sha256(), 0
        with store_errors("reading the snapshot back"):
            async for piece in self._store.read(name):
                digest.update(piece)
                size += len(piece)
                if size > manifest.size:
                    break
        if (digest.hexdigest(), size) != (manifest.sha256, manifest.size):
            raise DamagedSnapshotError(
                f"the store returned {size} bytes that differ from the {manifest.size} bytes written"
            )

    async def _forget(self, name: str) -> None:
        """Deletes an object if the store allows it; without a manifest it does not count anyway."""
        try:
            with store_errors("deleting a partial object"):
                await self._store.delete(name)
        except StoreError:
            return

    async def fetch(self, name: str, path: Path) -> Snapshot:
        """Downloads and checks a snapshot. It may have no manifest, if another operator wrote it."""
        await self._download(name, path)
        snapshot = await asyncio.to_thread(check, path)
        manifest = await self._manifest(name)
        if manifest is None:
            return snapshot
        if manifest.sha256 != snapshot.sha256 or manifest.revision != snapshot.revision:
            raise DamagedSnapshotError("the snapshot does not match its manifest")
        return dataclasses.replace(snapshot, version=manifest.version)

    async def _download(self, name: str, path: Path) -> None:
        with store_errors("fetching the snapshot"), path.open("wb") as file:
            async for piece in self._store.read(name):
                file.write(piece)
                require_size(file.tell(), self._max_bytes)

    async def _manifest(self, name: str) -> Manifest | None:
        if name + _ENDING not in await self._names(name + _ENDING):
            return None
        return await self._read(name + _ENDING)

    async def _read(self, name: str) -> Manifest:
        content = bytearray()
        with store_errors("reading a manifest"):
            async for piece in self._store.read(name):
                content += piece
                if len(content) > _MANIFEST_BYTES:
                    raise DamagedSnapshotError("the manifest of the snapshot is invalid: it is too large")
        try:
            return msgspec.json.decode(content, type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise DamagedSnapshotError("the manifest of the snapshot is invalid") from None

    async def unused(self, name: str) -> str:
        """Returns the name, with a number appended if it is taken."""
        taken, number, free = {*await self._names(name)}, 1, name
        while free in taken or free + _ENDING in taken:
            number += 1
            free = f"{name}-{number}"
        return free

    async def series(self, name: str) -> list[Manifest]:
        """Returns the manifests of a series, oldest first, each with its current object name."""
        found = []
        for each in await self._names(name):
            own = each.removesuffix(_ENDING)
            if own != each and _is_of(name, own):
                try:
                    found.append(msgspec.structs.replace(await self._read(each), object=own))
                except DamagedSnapshotError:
                    continue
        return sorted(found, key=lambda manifest: manifest.taken)

    async def _names(self, start: str) -> list[str]:
        with store_errors("listing backups"):
            return await self._store.names(start)

    async def tidy(self, name: str) -> None:
        """Deletes partial objects of a series that earlier backups left."""
        try:
            for each in await self._names(name):
                if each.endswith(PARTIAL) and _is_of(name, each.removesuffix(PARTIAL).removesuffix(_ENDING)):
                    await self._forget(each)
        except StoreError:
            return

    async def thin(
        self, name: str, now: datetime, *, most: int, oldest: timedelta, spared: frozenset[str] = frozenset()
    ) -> list[Manifest]:
        """Deletes surplus and expired snapshots of a series, never the newest or a spared one; returns those that remain."""
        series = await self.series(name)
        going = [each for each in surplus(series, now, most=most, oldest=oldest) if each.object not in spared]
        for manifest in going:
            with store_errors("deleting an old backup"):
                await self._store.delete(manifest.object + _ENDING)
                await self._store.delete(manifest.object)
        gone = {manifest.object for manifest in going}
        return [manifest for manifest in series if manifest.object not in gone]


def _is_of(series: str, name: str) -> bool:
    return name.startswith(series) and _BEHIND.fullmatch(name, len(series)) is not None


def surplus(series: Sequence[Manifest], now: datetime, *, most: int, oldest: timedelta) -> list[Manifest]:
    """Returns the snapshots of a series to delete, oldest first. A limit of 0 keeps all.

    A snapshot from the future comes from a wrong clock and sorts as the oldest: otherwise it would stay the newest
    forever, and every new one would be deleted at once.
    """
    ordered = sorted(series, key=lambda each: (each.taken <= now, each.taken))
    too_many = ordered[: max(0, len(ordered) - most)] if most else []
    spared = {each.object for each in _newest_of_others(ordered)}
    many = {each.object for each in too_many} - spared
    return [each for each in ordered[:-1] if each.object in many or (oldest and now - each.taken > oldest)]


def _newest_of_others(ordered: Sequence[Manifest]) -> list[Manifest]:
    """Returns the newest snapshot of each other cluster under the same path: it may be the only one that is left of it.

    Their clocks may be ahead.
    """
    theirs = sorted((each for each in ordered if each.cluster != ordered[-1].cluster), key=lambda each: each.taken)
    newest = {each.cluster: each for each in theirs}
    return sorted(newest.values(), key=lambda each: each.taken)[-_OTHERS:]
