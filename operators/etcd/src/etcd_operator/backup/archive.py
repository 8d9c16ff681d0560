"""Snapshots in a store. One counts when its manifest is there, and that is written last."""

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
"""What stands behind the name of a series in those of its snapshots. Whatever is beside them is somebody else's: a safety
copy, or another series whose name begins alike."""
_OTHERS: Final = 10
"""Of so many clusters with one path the newest is spared. Each restore makes another cluster of etcd: without an end to
that, the path would fill up."""
_MANIFEST_BYTES: Final = 1 << 16


def series_name(name: str, revision: int, taken: datetime) -> str:
    """The name of one of many.

    >>> series_name("some/etcd.db", 1234, datetime(2026, 1, 1, 2))
    'some/etcd.db_v1234_20260101T020000.000000Z'
    """
    return f"{name}_v{revision}_{taken:%Y%m%dT%H%M%S.%fZ}"


class Manifest(msgspec.Struct, frozen=True, kw_only=True):
    """What was known of a snapshot when it was put away."""

    object: Annotated[str, msgspec.Meta(max_length=2048)]
    sha256: Annotated[str, msgspec.Meta(max_length=64)]
    size: Annotated[int, msgspec.Meta(ge=0, le=MAX_REVISION)]
    revision: Annotated[int, msgspec.Meta(ge=0, le=MAX_REVISION)]
    version: Annotated[str, msgspec.Meta(pattern=r"^(v?[0-9]{1,9}\.[0-9]{1,9}\.[0-9]{1,9}([-.+].{0,64})?)?$")]
    taken: Annotated[datetime, msgspec.Meta(tz=True)]
    verified: Verification
    cluster: Annotated[str, msgspec.Meta(max_length=64)] = ""
    """The identity of the cluster of etcd that it was taken from; empty if that was not known."""


class Archive:
    """The snapshots of one store. Raises a `StoreError`, or `DamagedSnapshotError` for what is not what was put there."""

    def __init__(self, store: SnapshotStore, *, max_bytes: int = MAX_BYTES) -> None:
        self._store = store
        self._max_bytes = max_bytes

    async def put(self, snapshot: Snapshot, name: str, taken: datetime, verified: Verification) -> Manifest:
        """Puts it away under another name, reads it back, and only then lets it count.

        What was there under its name before stays as it was until then.
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
            await self._let_count(manifest)
        finally:
            for each in (name, name + _ENDING):
                await self._forget(each + PARTIAL)
        return manifest

    async def _write(self, path: Path, manifest: Manifest) -> None:
        """All that takes up room, before anything has its name."""
        with store_errors("writing the snapshot"):
            await self._store.put(manifest.object + PARTIAL, path)
        await self._read_back(manifest.object + PARTIAL, manifest)
        with store_errors("writing the manifest"):
            await self._store.put(manifest.object + _ENDING + PARTIAL, msgspec.json.encode(manifest))

    async def _let_count(self, manifest: Manifest) -> None:
        """A snapshot without a manifest can be restored, and one with that of another cannot: the old one goes first."""
        await self._forget(manifest.object + _ENDING)
        with store_errors("giving the snapshot its name"):
            size = await self._store.rename(manifest.object + PARTIAL, manifest.object)
        if size != manifest.size:
            raise DamagedSnapshotError(f"the store has {size} bytes under the snapshot's name, of {manifest.size}")
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
                f"the store gave {size} bytes back that are not the {manifest.size} that it was given"
            )

    async def _forget(self, name: str) -> None:
        """Deletes it if it can: whatever has no manifest does not count anyway."""
        try:
            with store_errors("deleting what is left"):
                await self._store.delete(name)
        except StoreError:
            return

    async def fetch(self, name: str, path: Path) -> Snapshot:
        """The snapshot as a file, checked. One without a manifest, as other operators leave it, is checked by itself."""
        await self._download(name, path)
        snapshot = await asyncio.to_thread(check, path)
        manifest = await self._manifest(name)
        if manifest is None:
            return snapshot
        if manifest.sha256 != snapshot.sha256 or manifest.revision != snapshot.revision:
            raise DamagedSnapshotError("the snapshot is another one than its manifest says")
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
                    raise DamagedSnapshotError("the manifest of the snapshot cannot be read: it is too large")
        try:
            return msgspec.json.decode(content, type=Manifest)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise DamagedSnapshotError("the manifest of the snapshot cannot be read") from None

    async def unused(self, name: str) -> str:
        """The name, with a number behind it if there is one of that name already."""
        taken, number, free = {*await self._names(name)}, 1, name
        while free in taken or free + _ENDING in taken:
            number += 1
            free = f"{name}-{number}"
        return free

    async def series(self, name: str) -> list[Manifest]:
        """The good ones of a series, oldest first; each by the name that it has now, wherever it was put."""
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
        """Deletes what was begun of a series, and never finished, if it can: it would take up room for ever."""
        try:
            for each in await self._names(name):
                if each.endswith(PARTIAL) and _is_of(name, each.removesuffix(PARTIAL).removesuffix(_ENDING)):
                    await self._forget(each)
        except StoreError:
            return

    async def thin(
        self, name: str, now: datetime, *, most: int, oldest: timedelta, spared: frozenset[str] = frozenset()
    ) -> list[Manifest]:
        """Deletes those of a series that are too many or too old, by their time, and never the newest good one, or what is
        spared; those that stay.
        """
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
    """What may go of a series, oldest first. 0 keeps all.

    What is said to be from the future was taken by a clock that was wrong, before all that is known to be right: it would
    be the newest for ever, and whatever is made from now on would go at once.
    """
    ordered = sorted(series, key=lambda each: (each.taken <= now, each.taken))
    too_many = ordered[: max(0, len(ordered) - most)] if most else []
    spared = {each.object for each in _newest_of_others(ordered)}
    many = {each.object for each in too_many} - spared
    return [each for each in ordered[:-1] if each.object in many or (oldest and now - each.taken > oldest)]


def _newest_of_others(ordered: Sequence[Manifest]) -> list[Manifest]:
    """What other clusters than that of the last one have under the same path: they may have no other, and make none any
    more. Their clocks may be ahead of this one's.
    """
    theirs = sorted((each for each in ordered if each.cluster != ordered[-1].cluster), key=lambda each: each.taken)
    newest = {each.cluster: each for each in theirs}
    return sorted(newest.values(), key=lambda each: each.taken)[-_OTHERS:]
